//go:build !unix

package bench

import "time"

// cpuTime is wall time where the system does not tell.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
