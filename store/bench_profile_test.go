package store_test

import (
	"testing"
	"time"
)

func BenchmarkOnlyOurs(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(lives(b, newStoreEngine(b), 64, 6*time.Second), "lives/s")
	}
}
