package pane

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/ui/screen"
)

// BenchmarkAnOpenDocument is what a change of the world and a frame cost while
// a document of thousands of lines is open.
func BenchmarkAnOpenDocument(b *testing.B) {
	var doc strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&doc, `,{"n":%d,"text":"some text that is not long"}`, i)
	}
	p := &Page{}
	p.Resize(120, 40)
	var paras Paras
	paras.JSON("", core.Raw("["+doc.String()[1:]+"]"))
	p.Set(paras)
	p.Do("fold-all")
	p.Do("fold-all")
	c := screen.New(120, 40)
	b.Run("change", func(b *testing.B) {
		for b.Loop() {
			p.Set(paras)
		}
	})
	b.Run("frame", func(b *testing.B) {
		for b.Loop() {
			p.Draw(c, true)
		}
	})
}
