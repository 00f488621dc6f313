package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// servingLimit keeps the whole program below a gigabyte of resident memory for the small presets.
const servingLimit = 800 << 20

// limitMemory sets the collector's soft limit unless the environment already did.
func limitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if bytes == 0 {
		bytes = servingLimit
	}
	debug.SetMemoryLimit(bytes)
}

// physicalMemory returns the machine's memory in bytes, 0 where it is not known.
func physicalMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}
