package web

import (
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"net/url"
)

// assets knows the content hash of every static file, so that addresses change when files do.
type assets struct {
	fsys   fs.FS
	hashes map[string]string
}

func newAssets(fsys fs.FS) (*assets, error) {
	a := &assets{fsys: fsys, hashes: map[string]string{}}
	if fsys == nil {
		return a, nil
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		a.hashes[name] = base64.RawURLEncoding.EncodeToString(sum[:9])
		return nil
	})
	return a, err
}

// URL is the address of a file below static/, with its content hash.
func (a *assets) URL(name string) string {
	u := "/static/" + (&url.URL{Path: name}).EscapedPath()
	if h, ok := a.hashes[name]; ok {
		u += "?v=" + h
	}
	return u
}
