package cell

import (
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/reach"
)

// hidden lists what no walled run in a directory sees of what is there, and more
// that this one does not see.
func (s *Supervisor) hidden(dir string, more []string) []string {
	return reach.Hidden(dir, slices.Concat(s.opt.Hide, more)...)
}

// Hides lists what no walled run sees of what is in a directory, relative to it.
func (s *Supervisor) Hides(dir string) (all []string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	for _, path := range s.hidden(real, nil) {
		if _, err := os.Lstat(path); err != nil || path == real || !within(path, real) {
			continue
		}
		if rel, err := filepath.Rel(real, path); err == nil {
			all = append(all, rel)
		}
	}
	return all
}

// told are what words of a command name by absolute paths, and whether it is
// to be written: files, each with its directory where that holds files of one
// thing, since a script finds what lies beside it; and where the wall says so
// directories.
func (w Wall) told(words []string) map[string]bool {
	all := map[string]bool{}
	if !w.Told && !w.Work {
		return all
	}
	home, _ := os.UserHomeDir()
	for _, word := range words {
		if !filepath.IsAbs(word) || len(word) > 4096 {
			continue
		}
		word = filepath.Clean(word)
		info, err := os.Stat(word)
		switch {
		case err != nil:
		case info.IsDir() && w.Work && word != "/" && !isSystem(word, false) && !isSystem(resolved(word), false):
			all[word] = true
		case info.Mode().IsRegular() && w.Told:
			if dir := filepath.Dir(word); dir != home && !within(home, dir) && dir != filepath.Clean(os.TempDir()) {
				word = dir
			}
			if !all[word] {
				all[word] = false
			}
		}
	}
	return all
}
