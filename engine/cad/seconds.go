package cad

import (
	"math"
	"time"
)

// Seconds is a time as the seed writes it: seconds since 1970 with a fraction,
// good to the microsecond. Zero is no time.
type Seconds float64

func seconds(t time.Time) Seconds {
	if t.IsZero() {
		return 0
	}
	return Seconds(float64(t.UnixMicro()) / 1e6)
}

// Time is the same as a time; the zero Time for none.
func (s Seconds) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(float64(s) * 1e6))).UTC()
}
