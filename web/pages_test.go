package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/runfile"
	"agentrl/internal/trajectory"
)

// doc asks for a page that must answer with the status and reads it.
func (s *site) doc(t testing.TB, path string, status int) *goquery.Document {
	t.Helper()
	code, body := s.get(t, path)
	if code != status {
		t.Fatalf("%s answers %d, want %d: %.600s", path, code, status, body)
	}
	d, err := goquery.NewDocumentFromReader(strings.NewReader(body))
	check(t, err)
	return d
}

var policyNonce = regexp.MustCompile(`script-src 'nonce-([^']+)'`)

// TestEveryPageKeepsThePolicy walks all pages: no inline style or handler, every script and every element that htmx
// acts on carries the nonce of the response, ids are unique, and hostile text stays text.
func TestEveryPageKeepsThePolicy(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Admin)
	s.fill(t)
	htmx := 0
	for name, path := range s.pages() {
		w := httptest.NewRecorder()
		s.srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		m := policyNonce.FindStringSubmatch(w.Header().Get("Content-Security-Policy"))
		if m == nil {
			t.Fatalf("%s: no nonce in the policy %q", name, w.Header().Get("Content-Security-Policy"))
		}
		d, err := goquery.NewDocumentFromReader(w.Body)
		check(t, err)
		ids := map[string]bool{}
		d.Find("*").Each(func(_ int, el *goquery.Selection) {
			hx, nonce := false, ""
			for _, a := range el.Nodes[0].Attr {
				switch {
				case a.Key == "style":
					t.Errorf("%s: inline style on %s", name, goquery.NodeName(el))
				case strings.HasPrefix(a.Key, "on"):
					t.Errorf("%s: inline handler %s", name, a.Key)
				case a.Key == "hx-nonce":
					nonce = a.Val
				case strings.HasPrefix(a.Key, "hx-") || strings.HasPrefix(a.Key, "data-hx-"):
					hx = true
				case a.Key == "id":
					if ids[a.Val] {
						t.Errorf("%s: the id %q is used twice", name, a.Val)
					}
					ids[a.Val] = true
				}
			}
			if hx {
				htmx++
				if nonce != m[1] {
					t.Errorf("%s: htmx element with nonce %q, want %q", name, nonce, m[1])
				}
			}
			if goquery.NodeName(el) == "script" && el.AttrOr("nonce", "") != m[1] {
				t.Errorf("%s: a script without the nonce", name)
			}
		})
		if d.Find("img[src=x]").Length() != 0 || d.Find("h1").Length() != 1 || d.Find("title").Text() == "" {
			t.Errorf("%s: %d h1, title %q, hostile images %d", name, d.Find("h1").Length(), d.Find("title").Text(), d.Find("img[src=x]").Length())
		}
	}
	if htmx == 0 {
		t.Error("no page uses htmx; the check of nonces is empty")
	}
}

func TestRunsTable(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Researcher)
	d := s.doc(t, "/runs", 200)
	if d.Find(".empty a.button.primary").AttrOr("href", "") != "/runs/new" || d.Find("table").Length() != 0 {
		t.Error("the empty table does not offer a new run")
	}
	for i := range 203 {
		s.addRun(t, fmt.Sprintf("run-%03d", i))
	}
	s.addHistory(t, s.addRun(t, `<i>odd "name"</i>`), 3, 4, experiment.Finished)
	d = s.doc(t, "/runs", 200)
	if n := d.Find("#runs tbody tr").Length(); n != 200 {
		t.Errorf("%d rows", n)
	}
	if got := d.Find(".pager span").Text(); got != "200 shown of 204 that match" {
		t.Error(got)
	}
	first := d.Find("#runs tbody tr").First()
	if first.Find("a.row").First().Text() != `<i>odd "name"</i>` || first.Find("[data-cell=status]").Text() == "" {
		t.Error(first.Html())
	}
	next, _ := d.Find(`.pager a[rel=next]`).Attr("href")
	if d = s.doc(t, next, 200); d.Find("#runs tbody tr").Length() != 4 || d.Find(".pager a").First().Text() != "First page" {
		t.Errorf("page two has %d rows", d.Find("#runs tbody tr").Length())
	}
	if d = s.doc(t, "/runs?q=run-01&sort=name", 200); d.Find("#runs tbody tr").Length() != 10 || d.Find("#runs tbody a.row").First().Text() != "run-010" ||
		d.Find("th[aria-sort=ascending]").Length() != 1 {
		t.Error(d.Find("#runs").Html())
	}
	if d = s.doc(t, "/runs?state=finished", 200); d.Find("#runs tbody tr").Length() != 1 {
		t.Error("the state filter does not hold")
	}
	if d = s.doc(t, "/runs?q=zzz", 200); !strings.Contains(d.Find(".empty").Text(), "No run matches") {
		t.Error(d.Find("main").Text())
	}
	for _, bad := range []string{"/runs?sort=evil", "/runs?experiment=x", "/runs?cursor=%00nonsense", "/runs?state=unheard"} {
		if code, _ := s.get(t, bad); code != 400 {
			t.Errorf("%s answers %d", bad, code)
		}
	}
}

func TestColumnsAreRemembered(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Viewer)
	s.addRun(t, "a")
	d := s.doc(t, "/runs?col=id&col=tokens&col=unknown", 200)
	heads := func(d *goquery.Document) string {
		return strings.Join(strings.Fields(d.Find("#runs thead th").Text()), " ")
	}
	if got := heads(d); got != "Run Status TokensId ↓, sorted descending" {
		t.Error(got)
	}
	u, err := s.UserByID(t.Context(), s.user.ID)
	check(t, err)
	s.user = u
	if got := heads(s.doc(t, "/runs", 200)); got != "Run Status TokensId ↓, sorted descending" {
		t.Errorf("not remembered: %q", got)
	}
	if d.Find(`a[href="/runs/new"]`).Length() != 0 {
		t.Error("a viewer is offered a new run")
	}
}

func TestRunPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Researcher)
	run := s.addRun(t, "quick")
	s.addHistory(t, run, 12, 51, experiment.Running)
	d := s.doc(t, "/runs/1", 200)
	if got := strings.Join(strings.Fields(d.Find("#run-status").Text()), " "); got != "running · step 51 of 300" {
		t.Error(got)
	}
	if d.Find("#run-progress").AttrOr("value", "") != "51" || !strings.HasPrefix(d.Find("#run-eta").Text(), "about 8 m") {
		t.Error(d.Find("#run-eta").Text())
	}
	if d.Find("[data-chart]").Length() < 8 || d.Find(".rollouts li").Length() != 12 || d.Find(".numbers tbody tr").Length() < 15 {
		t.Error("charts, rollouts or numbers are missing")
	}
	var spec struct{ Series []struct{ Metric string } }
	check(t, json.Unmarshal([]byte(d.Find("#chart-pass").AttrOr("data-chart", "")), &spec))
	if len(spec.Series) != 2 || spec.Series[0].Metric != "pass_rate" || spec.Series[1].Metric != "eval/pass@1" {
		t.Errorf("%+v", spec)
	}
	if d.Find(`form[action="/runs/1/stop"]`).Length() == 0 || d.Find(`form[action="/runs/1/resume"]`).Length() != 0 {
		t.Error("a running run can be stopped, not resumed")
	}
	d = s.doc(t, "/runs/1/evaluations", 200)
	if n := d.Find("main tbody tr").Length(); n != 2 {
		t.Errorf("%d evaluations, want those of steps 50 and 1", n)
	}
	if got := d.Find("main tbody tr").First().Find("td").First().Text(); got != "alfworld-valid" {
		t.Error(got)
	}
	d = s.doc(t, "/runs/1/groups?sort=-spread", 200)
	if d.Find("#list tbody tr").Length() != 12 || d.Find("#list svg.rewards rect").Length() != 96 {
		t.Error("groups or their rewards are missing")
	}
	d = s.doc(t, "/runs/1/rollouts?pass=yes&phase=rl", 200)
	if n := d.Find("#list tbody tr").Length(); n == 0 || n != d.Find("#list td .pass").Length() {
		t.Errorf("%d rows, %d of them passed", n, d.Find("#list td .pass").Length())
	}
	d = s.doc(t, "/runs/1/log", 200)
	if !strings.Contains(d.Find("#log li.error p").Text(), "<script>alert(1)</script>") {
		t.Error("the message is not shown as it is")
	}
	if d = s.doc(t, "/runs/1/attempts", 200); !strings.Contains(d.Find("main").Text(), "3.0 MiB") || !strings.Contains(d.Find("main").Text(), "node-a") {
		t.Error("checkpoint or worker is missing")
	}
	if d = s.doc(t, "/runs/1/config", 200); d.Find("#source").Text() != string(runfile.Format(run.Config)) {
		t.Error("the run file is not shown byte for byte")
	}
	for path, code := range map[string]int{"/runs/99": 404, "/runs/x": 404, "/runs/1/groups?sort=x": 400, "/runs/1/rollouts?phase=x": 400, "/runs/1/rollouts?pass=1": 400,
		"/runs/1/rollouts?end=x": 400, "/runs/1/rollouts?step=x": 400, "/runs/1/log?after=-4": 400, "/runs/1/rollouts?page=0": 400} {
		s.doc(t, path, code)
	}
	s.doc(t, "/runs/1/rollouts?page=4", 200)
}

func TestRunActions(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Researcher)
	run := s.addRun(t, "r")
	if w := s.post(t, "/runs/1/cancel", nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/runs/1" {
		t.Fatal(w.Code, w.Body)
	}
	now, err := s.Run(t.Context(), run.ID)
	check(t, err)
	if now.State != experiment.Cancelled {
		t.Fatal(now.State)
	}
	if s.doc(t, "/runs/1", 200).Find(`form[action="/runs/1/resume"]`).Length() == 0 {
		t.Error("a cancelled run can be resumed")
	}
	if w := s.post(t, "/runs/1/stop", nil); w.Code != http.StatusSeeOther {
		t.Error("a conflict is said on the run's page:", w.Code)
	}
	if w := s.post(t, "/runs/1/resume", nil); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code)
	}
	if now, err = s.Run(t.Context(), run.ID); err != nil || now.State != experiment.Queued || len(s.enq.runs) != 1 {
		t.Error(now.State, err, s.enq.runs)
	}
	s.user.Role = auth.Annotator
	for _, path := range []string{"/runs/1/stop", "/runs/1/cancel", "/runs/1/resume", "/runs", "/experiments", "/runs/draft"} {
		if w := s.post(t, path, nil); w.Code != http.StatusForbidden {
			t.Errorf("an annotator's post to %s answers %d", path, w.Code)
		}
	}
	if s.doc(t, "/runs/1", 200).Find(".actions form").Length() != 0 {
		t.Error("an annotator is offered actions")
	}
}

func TestTrajectoryPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Viewer)
	s.addHistory(t, s.addRun(t, "r"), 2, 4, experiment.Running)
	d := s.doc(t, "/trajectories/1-1-2-3", 200)
	if d.Find(".turn").Length() != 6 || d.Find(".turn .call").First().Text() != "act(go to drawer 1)" || d.Find("#member-prev").AttrOr("href", "") != "/trajectories/1-1-2-2" ||
		d.Find("#member-next").AttrOr("href", "") != "/trajectories/1-1-2-4" {
		t.Error(d.Find("main").Html())
	}
	if got := d.Find("#opening .obs").Last().Text(); !strings.Contains(got, "<img src=x onerror=alert(1)> \\u202Eevil\\u202C \\x1B[31m") {
		t.Error(got)
	}
	code, body := s.get(t, "/trajectories/1-1-2-3/tokens")
	var a struct{ Tokens []tokenItem }
	check(t, json.Unmarshal([]byte(body), &a))
	if code != 200 || len(a.Tokens) != 154 || a.Tokens[0].Turn != -1 || a.Tokens[0].Logprob != nil || a.Tokens[40].Turn != 0 || a.Tokens[40].Logprob == nil || a.Tokens[40].Advantage == nil || !a.Tokens[40].Trainable {
		t.Errorf("%d %.300s", code, body)
	}
	if d = s.doc(t, "/trajectories/1-1-999-0", 200); d.Find("#trajectory[data-live]").Length() != 1 {
		t.Error("an episode that is being played has no live page")
	}
	for _, path := range []string{"/trajectories/x", "/trajectories/9-1-1-1", "/trajectories/1-1-1-1-r", "/trajectories/..%2f"} {
		if code, _ := s.get(t, path); code != 404 {
			t.Errorf("%s answers %d", path, code)
		}
	}
}

func TestTrajectoryIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		run    int64
		att    int
		phase  string
		group  int64
		member int
		retry  int
	}{{1, 2, "rl", 3, 4, 0}, {9, 1, "eval", 0, 0, 7}, {12345678901, 3, "rl", 987654321, 15, 1}} {
		id := trajectory.MakeID(c.run, c.att, c.phase, c.group, c.member, c.retry)
		run, tr, ok := runOfTrajectory(id)
		if !ok || run != c.run || tr.Attempt != c.att || tr.Phase != c.phase || tr.Group != c.group || tr.Member != c.member || tr.Retry != c.retry {
			t.Errorf("%s: %d %+v %v", id, run, tr, ok)
		}
	}
}

func TestPalette(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Viewer)
	s.addHistory(t, s.addRun(t, "needle"), 1, 3, experiment.Running)
	s.addRun(t, "hay")
	if _, body := s.get(t, "/palette?q=need"); !strings.Contains(body, `"/runs/1"`) || strings.Contains(body, "hay") {
		t.Error(body)
	}
	if _, body := s.get(t, "/palette?q=1-1-1-0"); !strings.Contains(body, `"/trajectories/1-1-1-0"`) {
		t.Error(body)
	}
}

func TestExperimentsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Researcher)
	if w := s.post(t, "/experiments", url.Values{"name": {"Second"}, "description": {"d"}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/runs?experiment=2" {
		t.Fatal(w.Code, w.Header())
	}
	for _, form := range []url.Values{{"name": {"Second"}}, {"name": {""}}} {
		w := s.post(t, "/experiments", form)
		d, err := goquery.NewDocumentFromReader(w.Body)
		check(t, err)
		if w.Code != http.StatusUnprocessableEntity || d.Find(`[data-field=name] .error`).Text() == "" {
			t.Errorf("%v: %d %s", form, w.Code, d.Find(".field").Text())
		}
	}
	if d := s.doc(t, "/experiments", 200); d.Find("tbody tr").Length() != 2 {
		t.Error("both experiments are listed")
	}
}
