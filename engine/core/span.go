package core

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// ParseSpan reads a duration as Go writes it (30s, 15m, 2h), or in days (7d).
func ParseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n * float64(24*time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("allowed: a duration like 30s, 15m, 2h or 7d")
	}
	return d, nil
}

// Seconds rounds up, so that a limit below a second is still a limit.
func Seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
