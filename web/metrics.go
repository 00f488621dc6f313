package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serverMetrics is what /metrics tells, in a registry of its own.
type serverMetrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	logins   *prometheus.CounterVec
	sockets  prometheus.Gauge
	resyncs  prometheus.Counter
}

func newMetrics(version string) *serverMetrics {
	m := &serverMetrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrl_http_requests_total", Help: "Answered requests by route, method and status class.",
		}, []string{"route", "method", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agentrl_http_request_seconds", Help: "Time to answer by route.",
			Buckets: []float64{.005, .01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentrl_logins_total", Help: "Sign-ins by outcome.",
		}, []string{"outcome"}),
		sockets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentrl_live_connections", Help: "Open live connections.",
		}),
		resyncs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentrl_live_resyncs_total", Help: "Resync messages sent to live connections.",
		}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "agentrl_build_info", Help: "Always 1; the version is a label."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.logins, m.sockets, m.resyncs, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *serverMetrics) request(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, knownMethod(method), strconv.Itoa(status/100)+"xx").Inc()
	if route != livePath {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// knownMethod bounds the label: a client may send any word as method.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

func (m *serverMetrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true}) // the server compresses
}
