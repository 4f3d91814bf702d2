package core

import "sync"

// Counts are how many there are now, in all and by whom. The zero value is ready.
type Counts[K comparable] struct {
	mu  sync.Mutex
	all int
	of  map[K]int
}

// Enter counts one more in, unless there are so many already, or so many of whom it is of.
func (c *Counts[K]) Enter(of K, most, mostOf int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= most || c.of[of] >= mostOf {
		return false
	}
	if c.of == nil {
		c.of = map[K]int{}
	}
	c.all++
	c.of[of]++
	return true
}

// Leave counts one out, and reports whether it was the last of whom it is of.
func (c *Counts[K]) Leave(of K) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[of]--; c.of[of] > 0 {
		return false
	}
	delete(c.of, of)
	return true
}
