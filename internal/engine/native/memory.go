package native

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// assumedMemory is taken where the system does not tell.
const assumedMemory = 8 << 30

// machineMemory returns the bytes that this process may use: the physical memory or the limit of its container,
// whichever is smaller.
func machineMemory() int64 {
	total := int64(assumedMemory)
	if f, err := os.Open("/proc/meminfo"); err == nil {
		sc := bufio.NewScanner(f)
		for sc.Scan() {
			if fields := strings.Fields(sc.Text()); len(fields) >= 2 && fields[0] == "MemTotal:" {
				if kb, err := strconv.ParseInt(fields[1], 10, 64); err == nil && kb > 0 {
					total = kb * 1024
				}
				break
			}
		}
		_ = f.Close() // only read
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "max" means no limit and does not parse.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
			total = min(total, n)
		}
	}
	return total
}
