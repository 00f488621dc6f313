-- Times are microseconds since the Unix epoch, 0 for none. Not-a-number is NULL. Blobs are described in internal/store.

-- +goose Up
CREATE TABLE users (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  email         TEXT NOT NULL UNIQUE,
  name          TEXT NOT NULL,
  role          TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  disabled      BOOLEAN NOT NULL,
  prefs         TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  last_seen_at  BIGINT NOT NULL
);

CREATE TABLE sessions (
  hash       BLOB PRIMARY KEY,
  user_id    BIGINT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL,
  user_agent TEXT NOT NULL,
  addr       TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions(user_id);

CREATE TABLE tokens (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id      BIGINT NOT NULL REFERENCES users(id) ON DELETE CASCADE,
  name         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  hash         BLOB NOT NULL UNIQUE,
  role         TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  revoked_at   BIGINT NOT NULL
);
CREATE INDEX tokens_user ON tokens(user_id);

CREATE TABLE audit (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  at          BIGINT NOT NULL,
  user_id     BIGINT NOT NULL,
  email       TEXT NOT NULL,
  addr        TEXT NOT NULL,
  action      TEXT NOT NULL,
  object      TEXT NOT NULL,
  before_text TEXT NOT NULL,
  after_text  TEXT NOT NULL
);
-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit record is append-only'); END;
-- +goose StatementEnd

CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE experiments (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL,
  owner_id    BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  runs        BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE runs (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment_id  BIGINT NOT NULL REFERENCES experiments(id),
  name           TEXT NOT NULL,
  owner_id       BIGINT NOT NULL,
  state          TEXT NOT NULL,
  reason         TEXT NOT NULL,
  queue          TEXT NOT NULL,
  seed           BIGINT NOT NULL,
  attempt        BIGINT NOT NULL,
  fence          BIGINT NOT NULL,
  lease_until    BIGINT NOT NULL,
  worker_id      TEXT NOT NULL,
  stop_requested TEXT NOT NULL,
  forked_from    BIGINT NOT NULL,
  phase          TEXT NOT NULL,
  step           BIGINT NOT NULL,
  steps          BIGINT NOT NULL,
  warmup_step    BIGINT NOT NULL,
  warmup_steps   BIGINT NOT NULL,
  reward_mean    DOUBLE PRECISION NOT NULL,
  pass_rate      DOUBLE PRECISION NOT NULL,
  eval_pass      DOUBLE PRECISION NOT NULL,
  trajectories   BIGINT NOT NULL,
  tokens         BIGINT NOT NULL,
  step_seconds   DOUBLE PRECISION NOT NULL,
  parameters     BIGINT NOT NULL,
  created_at     BIGINT NOT NULL,
  started_at     BIGINT NOT NULL,
  finished_at    BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL
);
CREATE INDEX runs_experiment ON runs(experiment_id, id);
CREATE INDEX runs_state ON runs(state, id);
CREATE INDEX runs_name ON runs(name, id);
CREATE INDEX runs_step ON runs(step, id);
CREATE INDEX runs_reward ON runs(reward_mean, id);
CREATE INDEX runs_pass ON runs(pass_rate, id);
CREATE INDEX runs_eval ON runs(eval_pass, id);
CREATE INDEX runs_created ON runs(created_at, id);
CREATE INDEX runs_updated ON runs(updated_at, id);

CREATE TABLE run_configs (
  run_id      BIGINT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  config_yaml TEXT NOT NULL,
  config_json TEXT NOT NULL
);

CREATE TABLE attempts (
  run_id       BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  number       BIGINT NOT NULL,
  worker_id    TEXT NOT NULL,
  host         TEXT NOT NULL,
  kernel       TEXT NOT NULL,
  fence        BIGINT NOT NULL,
  begun        BOOLEAN NOT NULL,
  start_warmup BIGINT NOT NULL,
  start_step   BIGINT NOT NULL,
  end_step     BIGINT NOT NULL,
  outcome      TEXT NOT NULL,
  reason       TEXT NOT NULL,
  started_at   BIGINT NOT NULL,
  ended_at     BIGINT NOT NULL,
  PRIMARY KEY (run_id, number)
);

CREATE TABLE jobs (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  kind        TEXT NOT NULL,
  run_id      BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  queue       TEXT NOT NULL,
  state       TEXT NOT NULL,
  tries       BIGINT NOT NULL,
  worker_id   TEXT NOT NULL,
  error       TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  started_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL
);
CREATE INDEX jobs_state ON jobs(state, id);
CREATE INDEX jobs_run ON jobs(run_id, id);

CREATE TABLE events (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id  BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  attempt BIGINT NOT NULL,
  at      BIGINT NOT NULL,
  level   TEXT NOT NULL,
  kind    TEXT NOT NULL,
  message TEXT NOT NULL
);
CREATE INDEX events_run ON events(run_id, id);

CREATE TABLE checkpoints (
  run_id      BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  attempt     BIGINT NOT NULL,
  step        BIGINT NOT NULL,
  warmup_step BIGINT NOT NULL,
  dir         TEXT NOT NULL,
  bytes       BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (run_id, dir)
);

CREATE TABLE workers (
  id         TEXT PRIMARY KEY,
  host       TEXT NOT NULL,
  pid        BIGINT NOT NULL,
  queues     TEXT NOT NULL,
  slots      BIGINT NOT NULL,
  run_ids    TEXT NOT NULL,
  version    TEXT NOT NULL,
  kernel     TEXT NOT NULL,
  cpus       BIGINT NOT NULL,
  memory     BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL,
  draining   BOOLEAN NOT NULL
);

CREATE TABLE saved_objects (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    BIGINT NOT NULL,
  body       TEXT NOT NULL,
  note       TEXT NOT NULL,
  author_id  BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (kind, name, version)
);

-- One row per series of an attempt: what is needed to append to it. tail holds the points after the last full chunk,
-- levels the bucket rows that are still open.
CREATE TABLE metric_series (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id       BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  attempt      BIGINT NOT NULL,
  metric       TEXT NOT NULL,
  n            BIGINT NOT NULL,
  last_step    BIGINT NOT NULL,
  last_time    BIGINT NOT NULL,
  last_tokens  BIGINT NOT NULL,
  last_samples BIGINT NOT NULL,
  tail         BLOB NOT NULL,
  levels       BLOB NOT NULL,
  UNIQUE (run_id, metric, attempt)
);

-- Full rows, never changed: level 0 holds 512 points, level L >= 1 holds 64 buckets of 8^L points.
CREATE TABLE metric_chunks (
  series_id BIGINT NOT NULL REFERENCES metric_series(id) ON DELETE CASCADE,
  level     BIGINT NOT NULL,
  idx       BIGINT NOT NULL,
  data      BLOB NOT NULL,
  PRIMARY KEY (series_id, level, idx)
);

-- One row per run and metric over the winning lineage.
CREATE TABLE run_metric (
  run_id     BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  metric     TEXT NOT NULL,
  n          BIGINT NOT NULL,
  last       DOUBLE PRECISION,
  min        DOUBLE PRECISION,
  max        DOUBLE PRECISION,
  first_step BIGINT NOT NULL,
  last_step  BIGINT NOT NULL,
  nan_count  BIGINT NOT NULL,
  PRIMARY KEY (run_id, metric)
);

CREATE TABLE trajectories (
  id               TEXT PRIMARY KEY,
  run_id           BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  attempt          BIGINT NOT NULL,
  step             BIGINT NOT NULL,
  phase            TEXT NOT NULL,
  draw             BIGINT NOT NULL,
  member           BIGINT NOT NULL,
  retry            BIGINT NOT NULL,
  task             TEXT NOT NULL,
  sample           BIGINT NOT NULL,
  status           TEXT NOT NULL,
  end_state        TEXT NOT NULL,
  error            TEXT NOT NULL,
  trained          BOOLEAN NOT NULL,
  dropped          TEXT NOT NULL,
  conflict         BOOLEAN NOT NULL,
  env_reward       DOUBLE PRECISION,
  reward           DOUBLE PRECISION,
  pass             BOOLEAN NOT NULL,
  advantage_group  DOUBLE PRECISION,
  advantage        DOUBLE PRECISION,
  dispatch_version BIGINT NOT NULL,
  staleness        BIGINT NOT NULL,
  started_at       BIGINT NOT NULL,
  ended_at         BIGINT NOT NULL,
  num_turns        BIGINT NOT NULL,
  letters          TEXT NOT NULL,
  num_tokens       BIGINT NOT NULL,
  action_tokens    BIGINT NOT NULL,
  superseded       BOOLEAN NOT NULL
);
CREATE INDEX trajectories_list ON trajectories(run_id, superseded, step DESC, draw DESC, member);
CREATE INDEX trajectories_draw ON trajectories(run_id, draw, member);

-- zstd over JSON of tools, opening messages and turns.
CREATE TABLE trajectory_messages (
  trajectory_id TEXT PRIMARY KEY REFERENCES trajectories(id) ON DELETE CASCADE,
  data          BLOB NOT NULL
);

-- zstd over the token arrays.
CREATE TABLE trajectory_tokens (
  trajectory_id TEXT PRIMARY KEY REFERENCES trajectories(id) ON DELETE CASCADE,
  data          BLOB NOT NULL
);

CREATE TABLE prompt_groups (
  run_id      BIGINT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  attempt     BIGINT NOT NULL,
  step        BIGINT NOT NULL,
  draw        BIGINT NOT NULL,
  task        TEXT NOT NULL,
  sample      BIGINT NOT NULL,
  size        BIGINT NOT NULL,
  members     TEXT NOT NULL,
  mean        DOUBLE PRECISION,
  spread      DOUBLE PRECISION,
  passes      BIGINT NOT NULL,
  all_equal   BOOLEAN NOT NULL,
  age_seconds DOUBLE PRECISION,
  staleness   BIGINT NOT NULL,
  dropped     TEXT NOT NULL,
  superseded  BOOLEAN NOT NULL,
  PRIMARY KEY (run_id, attempt, step, draw)
);
CREATE INDEX prompt_groups_list ON prompt_groups(run_id, superseded, step DESC, draw DESC);

-- How many runs and jobs are in each state, kept by triggers, because pages must not count a million rows.
CREATE TABLE counters (
  kind  TEXT NOT NULL,
  state TEXT NOT NULL,
  n     BIGINT NOT NULL,
  PRIMARY KEY (kind, state)
);
-- +goose StatementBegin
CREATE TRIGGER runs_counted AFTER INSERT ON runs BEGIN
  INSERT INTO counters (kind, state, n) VALUES ('runs', NEW.state, 1) ON CONFLICT (kind, state) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER runs_recounted AFTER UPDATE OF state ON runs WHEN OLD.state <> NEW.state BEGIN
  UPDATE counters SET n = n - 1 WHERE kind = 'runs' AND state = OLD.state;
  INSERT INTO counters (kind, state, n) VALUES ('runs', NEW.state, 1) ON CONFLICT (kind, state) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER runs_uncounted AFTER DELETE ON runs BEGIN
  UPDATE counters SET n = n - 1 WHERE kind = 'runs' AND state = OLD.state;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER jobs_counted AFTER INSERT ON jobs BEGIN
  INSERT INTO counters (kind, state, n) VALUES ('jobs', NEW.state, 1) ON CONFLICT (kind, state) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER jobs_recounted AFTER UPDATE OF state ON jobs WHEN OLD.state <> NEW.state BEGIN
  UPDATE counters SET n = n - 1 WHERE kind = 'jobs' AND state = OLD.state;
  INSERT INTO counters (kind, state, n) VALUES ('jobs', NEW.state, 1) ON CONFLICT (kind, state) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER jobs_uncounted AFTER DELETE ON jobs BEGIN
  UPDATE counters SET n = n - 1 WHERE kind = 'jobs' AND state = OLD.state;
END;
-- +goose StatementEnd
