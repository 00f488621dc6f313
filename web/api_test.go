package web

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/runfile"
	"agentrl/internal/trajectory"
)

// recorded executes one step of a run on paper.
func (w *world) recorded(run experiment.Run) {
	w.t.Helper()
	ctx, now := w.t.Context(), w.clock.now()
	wk := experiment.Worker{ID: "w-1", Host: "node-a", PID: 7, Queues: []string{"default"}, Slots: 1, RunIDs: []int64{run.ID}, StartedAt: now, SeenAt: now, Memory: 1 << 30, CPUs: 2}
	check(w.t, w.store.SaveWorker(ctx, wk))
	_, lease, err := w.store.Acquire(ctx, run.ID, wk, now, time.Hour)
	check(w.t, err)
	check(w.t, w.store.SetStart(ctx, lease, 0, 0, "go"))
	id := trajectory.MakeID(run.ID, 1, "rl", 0, 0, 0)
	msg := trajectory.Message{Role: trajectory.Assistant, Content: "<script>alert(1)</script>"}
	tr := &trajectory.Trajectory{ID: id, RunID: run.ID, Attempt: 1, Step: 1, Phase: "rl", Task: "alfworld-train", Sample: 3, Status: trajectory.Completed,
		Trained: true, Reward: 1, Pass: true, StartedAt: now, EndedAt: now, Open: []trajectory.Message{{Role: trajectory.User, Content: "go"}},
		Turns:  []trajectory.Turn{{PolicyID: "current", Letter: "C", TokenStart: 1, TokenEnd: 3, Trainable: true, Message: msg, StartedAt: now, EndedAt: now}},
		Tokens: []int32{5, 6, 7}, Logprobs: []float32{0, -0.5, -0.25}, TrainLogprobs: []float32{0, -0.5, -0.25}}
	check(w.t, w.store.CommitStep(ctx, lease, experiment.StepCommit{
		Points:       []metric.Point{{Metric: "reward/mean", Step: 1, Time: now, Value: 0.5}, {Metric: "train/loss", Step: 1, Time: now, Value: math.NaN()}},
		Trajectories: []*trajectory.Trajectory{tr},
		Groups:       []experiment.Group{{RunID: run.ID, Attempt: 1, Step: 1, Task: "alfworld-train", Sample: 3, Size: 1, Rewards: []float64{1}, Members: []string{id}, Letters: []string{"C"}, Mean: 1, Passes: 1}},
		Progress:     experiment.Progress{Phase: experiment.PhaseRL, Step: 1, Steps: 10},
	}))
	check(w.t, w.store.AddCheckpoint(ctx, lease, experiment.CheckpointInfo{RunID: run.ID, Attempt: 1, Step: 1, Dir: "runs/1/step-1", Bytes: 10, CreatedAt: now}))
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestAPI plays declarative scenarios over one store; every answer is held against the description.
func TestAPI(t *testing.T) {
	t.Parallel()
	w := populated(t)
	doc := description(t)
	run := w.run("base", "first") // run 1, job 1
	w.recorded(run)
	conf := testConfig("posted")
	yaml := string(runfile.Format(conf))
	named := testConfig("as object")
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	const mix = "- {task: alfworld-train, weight: 3}\n- {task: alfworld-valid, weight: 1}\n"
	const pool = "mode: cross\nmembers:\n  - {policy: current, weight: 0.75}\n  - {policy: stale, weight: 0.25, refresh_every: 25}\n"
	tid := url.PathEscape(trajectory.MakeID(run.ID, 1, "rl", 0, 0, 0))
	for _, c := range []struct {
		name, route, path string
		role              auth.Role
		body, kind        string
		status            int
		texts             []string
	}{
		{"experiments", "GET /api/v1/experiments", "", viewer, "", "", 200, []string{`"name":"base"`, `"runs":1`, `"total":1`, `!"next"`}},
		{"new experiment", "POST /api/v1/experiments", "", researcher, `{"name":"Abl <b>","description":"why"}`, "", 201, []string{`"id":2`, `Abl \u003cb\u003e`}},
		{"name taken", "POST /api/v1/experiments", "", researcher, `{"name":"base"}`, "", 409, []string{`"code":"conflict"`}},
		{"no name", "POST /api/v1/experiments", "", researcher, `{"name":"  "}`, "", 400, []string{`"field":"name"`}},
		{"unknown field", "POST /api/v1/experiments", "", researcher, `{"title":"x"}`, "", 400, []string{`"field":"title"`, "allowed at the top level are description, name"}},
		{"wrong type", "POST /api/v1/experiments", "", researcher, `{"name":5}`, "", 400, []string{`"field":"name"`, "must be a string, not a JSON number"}},
		{"not an object", "POST /api/v1/experiments", "", researcher, `[]`, "", 400, []string{"must be an object"}},
		{"two objects", "POST /api/v1/experiments", "", researcher, `{"name":"a"}{}`, "", 400, []string{"text after the JSON object"}},
		{"cut short", "POST /api/v1/experiments", "", researcher, `{"name":"a`, "", 400, []string{"not valid JSON"}},
		{"empty", "POST /api/v1/experiments", "", researcher, ``, "", 400, []string{"the body is empty"}},
		{"deep", "POST /api/v1/experiments", "", researcher, deep, "", 400, []string{"at most 32 levels"}},
		{"broken UTF-8", "POST /api/v1/experiments", "", researcher, "{\"name\":\"\xff\"}", "", 400, []string{"not valid UTF-8"}},
		{"a form", "POST /api/v1/experiments", "", researcher, `name=a`, "application/x-www-form-urlencoded", 400, []string{"accepts application/json"}},
		{"oversized", "POST /api/v1/experiments", "", researcher, `{"name":"` + strings.Repeat("a", apiBody) + `"}`, "", 413, []string{`"code":"too_large"`, "at most 1048576"}},
		{"get experiment", "GET /api/v1/experiments/{id}", "/api/v1/experiments/2", viewer, "", "", 200, []string{`"description":"why"`}},
		{"rename", "PATCH /api/v1/experiments/{id}", "/api/v1/experiments/2", researcher, `{"name":"Ablation"}`, "", 200, []string{`"name":"Ablation"`, `"description":"why"`}},
		{"rename nothing", "PATCH /api/v1/experiments/{id}", "/api/v1/experiments/99", researcher, `{"name":"Ablation"}`, "", 404, []string{`"code":"not_found"`}},

		{"runs", "GET /api/v1/runs", "", viewer, "", "", 200, []string{`"name":"first"`, `"state":"running"`, `"total":1`, "!config_yaml"}},
		{"runs filtered", "GET /api/v1/runs", "/api/v1/runs?state=queued,failed&sort=-created", viewer, "", "", 200, []string{`"items":[]`}},
		{"runs by unknown state", "GET /api/v1/runs", "/api/v1/runs?state=idle", viewer, "", "", 400, []string{`"field":"state"`, "queued"}},
		{"runs sorted wrongly", "GET /api/v1/runs", "/api/v1/runs?sort=colour", viewer, "", "", 400, []string{`"field":"sort"`}},
		{"runs too many", "GET /api/v1/runs", "/api/v1/runs?limit=201", viewer, "", "", 400, []string{`"field":"limit"`, "from 1 to 200"}},
		{"runs bad cursor", "GET /api/v1/runs", "/api/v1/runs?cursor=%00x", viewer, "", "", 400, []string{`"code":"invalid"`}},
		{"run", "GET /api/v1/runs/{id}", "/api/v1/runs/1", viewer, "", "", 200, []string{`"config":{`, `"group_size":`, `"config_yaml":`}},
		{"create from YAML body", "POST /api/v1/runs", "/api/v1/runs?experiment=fresh", researcher, yaml, "application/yaml", 201, []string{`"name":"posted"`, `"experiment":"fresh"`, `"state":"queued"`}},
		{"create from YAML text", "POST /api/v1/runs", "", researcher, jsonText(map[string]any{"yaml": yaml, "experiment_id": 1}), "", 201, []string{`"experiment":"base"`}},
		{"create from object", "POST /api/v1/runs", "", researcher, jsonText(map[string]any{"config": named}), "", 201, []string{`"name":"as object"`, `"experiment":"default"`}},
		{"create partly", "POST /api/v1/runs", "", researcher, `{"config":{"name":"small","tasks":[{"task":"alfworld-train","weight":1}],"algorithm":{"group_size":1}}}`, "", 400, []string{`"field":"algorithm.group_size"`, `"problems":[`}},
		{"create unknown key", "POST /api/v1/runs", "", researcher, jsonText(map[string]any{"yaml": yaml + "colour: red\n"}), "", 400, []string{`"path":"colour"`, `"line":`}},
		{"create unknown task", "POST /api/v1/runs", "", researcher, jsonText(map[string]any{"yaml": strings.ReplaceAll(yaml, "alfworld-train", "moon-landing")}), "", 400, []string{"moon-landing", "alfworld-train"}},
		{"create both", "POST /api/v1/runs", "", researcher, `{"yaml":"a","config":{}}`, "", 400, []string{"not both"}},
		{"create neither", "POST /api/v1/runs", "", researcher, `{}`, "", 400, []string{`"field":"yaml"`}},
		{"create nowhere", "POST /api/v1/runs", "", researcher, jsonText(map[string]any{"yaml": yaml, "experiment_id": 77}), "", 404, []string{`"code":"not_found"`}},
		{"create as annotator", "POST /api/v1/runs", "", auth.Annotator, `{}`, "", 403, []string{"needs the role researcher"}},
		{"validate good", "POST /api/v1/runs/validate", "", viewer, yaml, "application/yaml", 200, []string{`"ok":true`, `"problems":[]`}},
		{"validate bad", "POST /api/v1/runs/validate", "", viewer, "name: [", "application/yaml", 200, []string{`"ok":false`, `"message":`}},
		{"fork", "POST /api/v1/runs/{id}/fork", "/api/v1/runs/1/fork", researcher, `{"name":"child","seed":11}`, "", 201, []string{`"name":"child"`, `"forked_from":1`, `"seed":11`, `"experiment":"base"`}},
		{"fork nothing", "POST /api/v1/runs/{id}/fork", "/api/v1/runs/99/fork", researcher, `{}`, "", 404, []string{`"code":"not_found"`}},
		{"stop a queued run", "POST /api/v1/runs/{id}/stop", "/api/v1/runs/2/stop", researcher, "", "", 200, []string{`"state":"stopped"`}},
		{"stop it again", "POST /api/v1/runs/{id}/stop", "/api/v1/runs/2/stop", researcher, "", "", 409, []string{`"code":"conflict"`}},
		{"resume it", "POST /api/v1/runs/{id}/resume", "/api/v1/runs/2/resume", researcher, "", "", 200, []string{`"state":"queued"`}},
		{"cancel it", "POST /api/v1/runs/{id}/cancel", "/api/v1/runs/2/cancel", researcher, "", "", 200, []string{`"state":"cancelled"`}},
		{"stop a running run", "POST /api/v1/runs/{id}/stop", "/api/v1/runs/1/stop", researcher, "", "", 200, []string{`"state":"stopping"`, `"stop_requested":"stop"`}},
		{"presets", "GET /api/v1/presets", "", viewer, "", "", 200, []string{`"name":"quickstart"`}},

		{"attempts", "GET /api/v1/runs/{id}/attempts", "/api/v1/runs/1/attempts", viewer, "", "", 200, []string{`"number":1`, `"worker_id":"w-1"`, "!fence"}},
		{"events", "GET /api/v1/runs/{id}/events", "/api/v1/runs/1/events?limit=1", viewer, "", "", 200, []string{`"kind":"queued"`, `"next":"`}},
		{"checkpoints", "GET /api/v1/runs/{id}/checkpoints", "/api/v1/runs/1/checkpoints", viewer, "", "", 200, []string{`"step":1`}},
		{"summaries", "GET /api/v1/runs/{id}/summaries", "/api/v1/runs/1/summaries", viewer, "", "", 200, []string{`"metric":"reward/mean"`, `"last":0.5`, `"nan":1`}},
		{"groups", "GET /api/v1/runs/{id}/groups", "/api/v1/runs/1/groups?sort=-spread", viewer, "", "", 200, []string{`"members":["1-1-0-0"]`, `"total":1`}},
		{"groups sorted wrongly", "GET /api/v1/runs/{id}/groups", "/api/v1/runs/1/groups?sort=x", viewer, "", "", 400, []string{`"field":"sort"`}},
		{"groups bad cursor", "GET /api/v1/runs/{id}/groups", "/api/v1/runs/1/groups?cursor=abc", viewer, "", "", 400, []string{`"field":"cursor"`}},
		{"trajectories", "GET /api/v1/runs/{id}/trajectories", "/api/v1/runs/1/trajectories?pass=true&phase=rl&end_state=Completed", viewer, "", "", 200, []string{`"id":"1-1-0-0"`, "!alert"}},
		{"no trajectories", "GET /api/v1/runs/{id}/trajectories", "/api/v1/runs/1/trajectories?pass=false", viewer, "", "", 200, []string{`"items":[]`}},
		{"trajectories of nothing", "GET /api/v1/runs/{id}/trajectories", "/api/v1/runs/99/trajectories", viewer, "", "", 404, nil},
		{"trajectories bad state", "GET /api/v1/runs/{id}/trajectories", "/api/v1/runs/1/trajectories?end_state=x", viewer, "", "", 400, []string{`"field":"end_state"`}},
		{"trajectory", "GET /api/v1/trajectories/{id}", "/api/v1/trajectories/" + tid, viewer, "", "", 200, []string{`\u003cscript\u003e`, "!<script>"}},
		{"no trajectory", "GET /api/v1/trajectories/{id}", "/api/v1/trajectories/9-9-9-9", viewer, "", "", 404, nil},
		{"tokens", "GET /api/v1/trajectories/{id}/tokens", "/api/v1/trajectories/" + tid + "/tokens", viewer, "", "", 200, []string{`"tokens":[5,6,7]`, `"logprobs":[0,-0.5,-0.25]`}},
		{"series", "GET /api/v1/series", "/api/v1/series?runs=1&metric=reward/mean", viewer, "", "", 200, []string{`"min":0.5`, `"max":0.5`, `"exact":true`}},
		{"series in columns", "GET /api/v1/series", "/api/v1/series?runs=1&metric=reward/mean&format=columns", viewer, "", "", 200, []string{`"min":[0.5]`, `!"buckets"`}},
		{"series of NaN", "GET /api/v1/series", "/api/v1/series?runs=1&metric=train/loss", viewer, "", "", 200, []string{`"nan":1`}},
		{"series without runs", "GET /api/v1/series", "/api/v1/series?metric=a", viewer, "", "", 400, []string{`"field":"runs"`}},
		{"series over colours", "GET /api/v1/series", "/api/v1/series?runs=1&metric=a&x=colour", viewer, "", "", 400, []string{`"field":"x"`}},
		{"series from nowhere", "GET /api/v1/series", "/api/v1/series?runs=1&metric=a&from=NaN", viewer, "", "", 400, []string{`"field":"from"`}},

		{"save mix", "POST /api/v1/mixes", "", researcher, jsonText(map[string]string{"name": "main", "body": mix, "note": "n"}), "", 201, []string{`"version":1`, `"kind":"mix"`}},
		{"save mix again", "POST /api/v1/mixes", "", researcher, jsonText(map[string]string{"name": "main", "body": mix}), "", 201, []string{`"version":2`}},
		{"save bad mix", "POST /api/v1/mixes", "", researcher, `{"name":"main","body":"- {task: moon, weight: 1}"}`, "", 400, []string{`"field":"body"`, "moon"}},
		{"save mix of zeros", "POST /api/v1/mixes", "", researcher, `{"name":"main","body":"- {task: alfworld-train, weight: 0}"}`, "", 400, []string{`"field":"body"`}},
		{"save mix with alias", "POST /api/v1/mixes", "", researcher, `{"name":"main","body":"- &a {task: alfworld-train, weight: 1}\n- *a"}`, "", 400, []string{"aliases"}},
		{"save mix with slash", "POST /api/v1/mixes", "", researcher, jsonText(map[string]string{"name": "a/b", "body": mix}), "", 400, []string{`"field":"name"`}},
		{"mixes", "GET /api/v1/mixes", "", viewer, "", "", 200, []string{`"version":2`, `!"version":1`}},
		{"mix versions", "GET /api/v1/mixes/{name}/versions", "/api/v1/mixes/main/versions", viewer, "", "", 200, []string{`"version":2`, `"version":1`}},
		{"no mix", "GET /api/v1/mixes/{name}/versions", "/api/v1/mixes/none/versions", viewer, "", "", 404, nil},
		{"save pool", "POST /api/v1/pools", "", researcher, jsonText(map[string]string{"name": "cross", "body": pool}), "", 201, []string{`"kind":"pool"`}},
		{"save lone pool", "POST /api/v1/pools", "", researcher, `{"name":"cross","body":"mode: mix\nmembers: [{policy: current, weight: 1}]"}`, "", 400, []string{`"field":"body"`}},
		{"save unknown key", "POST /api/v1/pools", "", researcher, `{"name":"cross","body":"mode: single\ncolour: red"}`, "", 400, []string{`"field":"body"`, "colour"}},
		{"pools", "GET /api/v1/pools", "", viewer, "", "", 200, []string{`"name":"cross"`}},
		{"pool versions", "GET /api/v1/pools/{name}/versions", "/api/v1/pools/cross/versions", viewer, "", "", 200, []string{`"total":1`}},
		{"saved", "GET /api/v1/saved/{id}", "/api/v1/saved/1", viewer, "", "", 200, []string{`"name":"main"`}},
		{"dry run", "POST /api/v1/dry-run", "", viewer, jsonText(map[string]any{"mix": mix, "pool": pool, "batch_prompts": 8, "group_size": 4, "turns": 5, "seed": 7}), "", 200,
			[]string{`"trajectories":32`, `"share":0.75,"groups":6,"trajectories":24,"samples":1000`, `"letter":"S","share":0.25,"turns":40`}},
		{"dry run of nothing", "POST /api/v1/dry-run", "", viewer, `{}`, "", 400, []string{`"field":"mix"`}},
		{"dry run too large", "POST /api/v1/dry-run", "", viewer, jsonText(map[string]any{"mix": mix, "batch_prompts": 100000}), "", 400, []string{`"field":"batch_prompts"`}},

		{"me", "GET /api/v1/me", "", auth.Annotator, "", "", 200, []string{`"role":"annotator"`, "!argon2"}},
		{"tokens of mine", "GET /api/v1/tokens", "", viewer, "", "", 200, []string{`"name":"test"`, `!"token"`}},
		{"new token", "POST /api/v1/tokens", "", viewer, `{"name":"script","days":30}`, "", 201, []string{`"role":"viewer"`, `"token":"`, `"expires_at":"2026-04-03`}},
		{"token above role", "POST /api/v1/tokens", "", viewer, `{"name":"script","role":"admin"}`, "", 403, []string{`"field":"role"`}},
		{"token of no role", "POST /api/v1/tokens", "", viewer, `{"name":"script","role":"king"}`, "", 400, []string{`"field":"role"`, "viewer, annotator"}},
		{"token too long", "POST /api/v1/tokens", "", viewer, `{"name":"script","days":99999}`, "", 400, []string{`"field":"days"`}},
		{"foreign token", "DELETE /api/v1/tokens/{id}", "/api/v1/tokens/1", viewer, "", "", 404, nil},
		{"users", "GET /api/v1/users", "", admin, "", "", 200, []string{`"email":"viewer@example.org"`, "!argon2"}},
		{"users as researcher", "GET /api/v1/users", "", researcher, "", "", 403, []string{"needs the role admin"}},
		{"new user", "POST /api/v1/users", "", admin, `{"email":"new@example.org","password":"` + goodPassword + `","role":"viewer"}`, "", 201, []string{`"id":5`, "!herons"}},
		{"user twice", "POST /api/v1/users", "", admin, `{"email":"NEW@example.org","password":"` + goodPassword + `","role":"viewer"}`, "", 409, nil},
		{"user weak", "POST /api/v1/users", "", admin, `{"email":"n2@example.org","password":"short","role":"viewer"}`, "", 400, []string{`"field":"password"`}},
		{"promote", "PATCH /api/v1/users/{id}", "/api/v1/users/5", admin, `{"role":"researcher","disabled":true}`, "", 200, []string{`"role":"researcher"`, `"disabled":true`}},
		{"change nothing", "PATCH /api/v1/users/{id}", "/api/v1/users/5", admin, `{}`, "", 400, []string{"nothing to change"}},
		{"last admin", "PATCH /api/v1/users/{id}", "/api/v1/users/1", admin, `{"role":"viewer"}`, "", 409, []string{`"code":"conflict"`}},
		{"audit", "GET /api/v1/audit", "/api/v1/audit?limit=200", admin, "", "", 200, []string{`"action":"run.create"`, `"action":"mix.save"`, `"object":"run/2"`, "!herons"}},

		{"workers", "GET /api/v1/workers", "", viewer, "", "", 200, []string{`"id":"w-1"`}},
		{"jobs", "GET /api/v1/jobs", "/api/v1/jobs?state=active", viewer, "", "", 200, []string{`"run_id":1`, `"state":"active"`, `!"pending"`}},
		{"jobs bad state", "GET /api/v1/jobs", "/api/v1/jobs?state=x", viewer, "", "", 400, []string{`"field":"state"`}},
		{"job", "GET /api/v1/jobs/{id}", "/api/v1/jobs/1", viewer, "", "", 200, []string{`"deliveries":[]`}},
		{"queues", "GET /api/v1/queues", "", viewer, "", "", 200, []string{`"active":1`, `"cancelled":2`, `"reachable":false`}},
		{"tasks", "GET /api/v1/tasks", "", viewer, "", "", 200, []string{`"task":"alfworld-train"`, `"samples":1000`}},
	} {
		method, route, _ := strings.Cut(c.route, " ")
		path := c.path
		if path == "" {
			path = route
		}
		a := w.do(call{method: method, path: path, role: c.role, body: c.body, kind: c.kind})
		ok := t.Run(c.name, func(t *testing.T) {
			a.want(t, c.status, c.texts...)
			conforms(t, doc, route, a)
		})
		_ = ok
	}
	if n := len(w.enq.runs); n != 5 { // four created and one resumed
		t.Errorf("%d runs were handed to the queue, want 5: %v", n, w.enq.runs)
	}
}

// TestPaging walks lists page by page and meets everything once.
func TestPaging(t *testing.T) {
	t.Parallel()
	w := populated(t)
	for i := range 7 {
		w.run("exp "+strconv.Itoa(i), "run "+strconv.Itoa(i))
	}
	for _, path := range []string{"/api/v1/experiments", "/api/v1/runs", "/api/v1/runs?sort=name"} {
		seen, cursor := map[float64]bool{}, ""
		for range 10 {
			sep := "?"
			if strings.Contains(path, "?") {
				sep = "&"
			}
			a := w.do(call{method: "GET", path: path + sep + "limit=3&cursor=" + url.QueryEscape(cursor), role: viewer})
			a.want(t, 200, `"total":7`)
			var l struct {
				Items []map[string]any
				Next  string
			}
			a.decode(t, &l)
			for _, it := range l.Items {
				id := it["id"].(float64)
				if seen[id] {
					t.Errorf("%s: %v comes twice", path, id)
				}
				seen[id] = true
			}
			if cursor = l.Next; cursor == "" {
				break
			}
		}
		if len(seen) != 7 {
			t.Errorf("%s: %d of 7 items", path, len(seen))
		}
	}
}
