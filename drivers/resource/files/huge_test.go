package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/expect"
)

// hugeTree makes a tree of 1,000 directories whose files together read as so many
// bytes; all but a tenth of the files are holes of the same size.
func hugeTree(b *testing.B, files int, bytes int64) string {
	b.Helper()
	root := filepath.Join(b.TempDir(), "tree")
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("d%02d", i/1000), fmt.Sprintf("d%03d", i/100))
		if i%100 == 0 {
			expect.No(b, os.MkdirAll(dir, 0o755))
		}
		path := filepath.Join(dir, fmt.Sprintf("f%d", i))
		if i%10 == 0 {
			write(b, path, fmt.Sprintf("file %d", i))
		} else {
			f, err := os.Create(path)
			if err == nil {
				err = f.Truncate(bytes * 10 / 9 / int64(files))
			}
			expect.No(b, err)
			f.Close()
		}
	}
	return root
}

// written are the bytes that this process has had written so far (proc_pid_io(5)).
func written(b testing.TB) (n int64) {
	b.Helper()
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip(err)
	}
	var read int64
	expect.Of(fmt.Sscanf(string(data), "rchar: %d\nwchar: %d", &read, &n))(b)
	return n
}

// BenchmarkSnapshot100kFiles takes states of 100,000 files with 10 GB: the first one,
// again with nothing changed, with 20 files changed, and the first one of an engine
// that was started anew.
func BenchmarkSnapshot100kFiles(b *testing.B) {
	const files, changed = 100_000, 20
	root := hugeTree(b, files, 10<<30)
	time.Sleep(3 * time.Second) // what changed in the second of its reading is read again
	dir := b.TempDir()
	d := newDriver(b, Options{Dir: dir})
	n := 0
	take := func(b *testing.B, d *Driver) {
		b.Helper()
		n++
		kept(b, d, fmt.Sprintf("s%d", n), root)
	}
	report := func(b *testing.B, before int64) {
		b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
		b.ReportMetric(float64(written(b)-before)/float64(b.N), "written/op")
	}
	began, before := time.Now(), written(b)
	take(b, d)
	b.Logf("cold: %v, %d bytes written", time.Since(began), written(b)-before)
	b.Run("warm", func(b *testing.B) {
		before := written(b)
		for range b.N {
			take(b, d)
		}
		report(b, before)
	})
	b.Run("changed", func(b *testing.B) {
		before := written(b)
		for range b.N {
			b.StopTimer()
			own := written(b)
			for i := range changed {
				k := (i*4999 + n*10) % files / 10 * 10
				write(b, filepath.Join(root, fmt.Sprintf("d%02d", k/1000), fmt.Sprintf("d%03d", k/100), fmt.Sprintf("f%d", k)), fmt.Sprintf("%2048d", n*100+i))
			}
			before += written(b) - own
			b.StartTimer()
			take(b, d)
		}
		report(b, before)
	})
	b.Run("anew", func(b *testing.B) {
		before := written(b)
		for range b.N {
			take(b, newDriver(b, Options{Dir: dir}))
		}
		report(b, before)
	})
}
