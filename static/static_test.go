package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// maxScripts is the budget of dashboard.md 7 for all JavaScript, gzipped.
const maxScripts = 70_000

func TestScriptBudget(t *testing.T) {
	t.Parallel()
	a, err := New("/static/")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, f := range a.files {
		if strings.HasSuffix(name, ".js") {
			total += len(f.gz)
		}
	}
	t.Logf("JavaScript is %d bytes gzipped of %d allowed", total, maxScripts)
	if total == 0 || total > maxScripts {
		t.Errorf("JavaScript is %d bytes gzipped; the budget is %d", total, maxScripts)
	}
}

// TestVendored holds the sums in vendor/README.md against the files, both ways.
func TestVendored(t *testing.T) {
	t.Parallel()
	readme, err := FS.ReadFile("vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+) \| [^|]+ \| ([0-9a-f]{64}) \|$`).FindAllStringSubmatch(string(readme), -1) {
		listed["vendor/"+m[1]] = m[2]
	}
	err = fs.WalkDir(FS, "vendor", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "vendor/README.md" {
			return err
		}
		b, err := FS.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		if got := hex.EncodeToString(sum[:]); listed[name] != got {
			t.Errorf("%s has sum %s; the list says %q", name, got, listed[name])
		}
		delete(listed, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		t.Errorf("%s is listed but not there", name)
	}
}

// TestOwnScripts keeps markup and evaluated code out of our modules: they build elements, they never parse text.
func TestOwnScripts(t *testing.T) {
	t.Parallel()
	bad := regexp.MustCompile(`innerHTML|outerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("style"`)
	err := fs.WalkDir(FS, "js", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := FS.ReadFile(name)
		if err != nil {
			return err
		}
		if m := bad.Find(b); m != nil {
			t.Errorf("%s uses %q", name, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	a, err := New("/static/")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string, head ...string) *http.Response {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		for i := 0; i+1 < len(head); i += 2 {
			r.Header.Set(head[i], head[i+1])
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Result()
	}
	want, err := FS.ReadFile("css/app.css")
	if err != nil {
		t.Fatal(err)
	}
	res := ask("GET", a.URL("css/app.css"))
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 200 || !bytes.Equal(body, want) || res.Header.Get("Content-Type") != "text/css; charset=utf-8" ||
		!strings.Contains(res.Header.Get("Cache-Control"), "immutable") || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	res = ask("GET", a.URL("css/app.css"), "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(z); !bytes.Equal(body, want) {
		t.Error("the compressed file differs")
	}
	if res := ask("GET", "/static/css/app.css?v=old"); res.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("an old address may be kept: %v", res.Header)
	}
	if res := ask("GET", "/static/css/app.css", "If-None-Match", res.Header.Get("ETag")); res.StatusCode != http.StatusNotModified {
		t.Errorf("%d", res.StatusCode)
	}
	for path, status := range map[string]int{"/static/nothing.js": 404, "/static/../static.go": 404, "/static/": 404, "/static/css": 404} {
		if res := ask("GET", path); res.StatusCode != status {
			t.Errorf("%s answers %d", path, res.StatusCode)
		}
	}
	if res := ask("POST", "/static/css/app.css"); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if res := ask("HEAD", "/static/css/app.css"); res.StatusCode != 200 || res.ContentLength == 0 {
		t.Errorf("%d", res.StatusCode)
	}
	if got := a.URL("no/such"); got != "/static/no/such" {
		t.Error(got)
	}
}
