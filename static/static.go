// Package static embeds the style sheet, the ES modules and the vendored libraries, and serves them under addresses
// that change with their content.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// FS is the folder as it is in the repository.
//
//go:embed css js vendor icon.svg
var FS embed.FS

type file struct {
	body, gz []byte
	hash     string
	mime     string
}

// Assets knows every file's hash and compressed form. Safe for concurrent use.
type Assets struct {
	prefix string
	files  map[string]file
}

// New reads and compresses every file once. Addresses begin with prefix, e.g. "/static/".
func New(prefix string) (*Assets, error) {
	a := &Assets{prefix: prefix, files: map[string]file{}}
	err := fs.WalkDir(FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := FS.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		f := file{body: body, hash: hex.EncodeToString(sum[:6]), mime: mimeOf(name)}
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if b.Len() < len(body) {
			f.gz = b.Bytes()
		}
		a.files[name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the embedded files: %w", err)
	}
	return a, nil
}

// URL returns the address of a file, with its hash. An unknown name keeps its plain address, which answers 404.
func (a *Assets) URL(name string) string {
	f, ok := a.files[name]
	if !ok {
		return a.prefix + name
	}
	return a.prefix + name + "?v=" + f.hash
}

// ServeHTTP answers GET and HEAD below the prefix. With the right hash in the address the answer may be kept for ever.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(r.URL.Path, a.prefix)), "/")
	f, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mime)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+f.hash+`"`)
	h.Set("Vary", "Accept-Encoding")
	if r.URL.Query().Get("v") == f.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	if r.Header.Get("If-None-Match") == `"`+f.hash+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if f.gz != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gz
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the reader is gone when this fails
	}
}

func mimeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}
