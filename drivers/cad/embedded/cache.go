package embedded

import (
	"os"
	"path/filepath"
)

// CodeCache is where compiled code is kept between runs, for Options.CacheDir; ""
// where nothing can be kept, which only costs time.
func CodeCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "swarmdeck", "code")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return dir
}

// ShareCache has a process whose home is not the user's find the same CodeCache: what
// it may write, and its environment.
func ShareCache() (write []string, env map[string]string) {
	dir := CodeCache()
	if dir == "" {
		return nil, nil
	}
	return []string{dir}, map[string]string{"XDG_CACHE_HOME": filepath.Dir(filepath.Dir(dir))}
}
