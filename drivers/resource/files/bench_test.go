package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/expect"
)

// benchTree makes a tree like that of sources: many small files.
func benchTree(b *testing.B, files int) string {
	b.Helper()
	root := filepath.Join(b.TempDir(), "tree")
	data := make([]byte, 2048)
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("d%03d", i/100))
		if i%100 == 0 {
			expect.No(b, os.MkdirAll(dir, 0o755))
		}
		copy(data, fmt.Sprintf("file %d", i))
		write(b, filepath.Join(dir, fmt.Sprintf("f%d", i)), string(data))
	}
	return root
}

func perFile(b *testing.B, files int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*files), "µs/file")
}

func BenchmarkRestore10kFiles(b *testing.B) {
	const files = 10_000
	root := benchTree(b, files)
	d := newDriver(b, Options{})
	r, snap := kept(b, d, "s1", root)
	dir := b.TempDir()
	b.Run("as new", func(b *testing.B) {
		for n := range b.N {
			expect.Of(d.Restore(b.Context(), tenant, fmt.Sprintf("n%d", n), snap, r, filepath.Join(dir, fmt.Sprint(n))))(b)
		}
		perFile(b, files)
	})
	b.Run("in its place", func(b *testing.B) {
		for n := range b.N {
			expect.Of(d.Restore(b.Context(), tenant, fmt.Sprintf("p%d", n), snap, r, ""))(b)
		}
		perFile(b, files)
	})
}
