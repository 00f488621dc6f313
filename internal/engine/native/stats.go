package native

// Stats counts what the sampling service did since the start.
type Stats struct {
	Live          int64 // requests queued or being written
	PromptTokens  int64 // prompt tokens computed, that is, not found in a cache
	SampledTokens int64
	CacheBytes    int64
	CacheEntries  int
	CacheHits     int64
	CacheMisses   int64
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := Stats{
		Live:          e.service.load(),
		PromptTokens:  e.service.promptTokens.Load(),
		SampledTokens: e.service.sampledTokens.Load(),
	}
	s.CacheBytes, s.CacheEntries, s.CacheHits, s.CacheMisses = e.service.kv.stats()
	return s
}
