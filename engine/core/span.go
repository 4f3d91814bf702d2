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

// ParsePast reads a time as RFC 3339 has it, or a duration before now.
func ParsePast(now time.Time, text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UTC(), nil
	}
	d, err := ParseSpan(text)
	if err != nil {
		return time.Time{}, errors.New("allowed: a time like 2026-01-02T15:04:05Z or a duration like 15m")
	}
	return now.Add(-d), nil
}

// Seconds rounds up, so that a limit below a second is still a limit.
func Seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
