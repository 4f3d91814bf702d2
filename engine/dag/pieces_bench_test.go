package dag

import (
	"strings"
	"testing"
)

// BenchmarkPieces is what a block costs to be searched by text.
func BenchmarkPieces(b *testing.B) {
	text := []byte(strings.Repeat(`{"agent_id":"agent-3","kind":"tool_result","result":{"stdout":"output of it 5f0c8d1e"}}`, 12))
	b.SetBytes(blockEvents * int64(len(text)))
	for b.Loop() {
		var g gatherer
		for range blockEvents {
			g.add(text)
		}
		g.bits()
	}
}
