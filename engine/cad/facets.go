package cad

import (
	"container/list"
	"sync"

	"swarmdeck/engine/cad/mesh"
)

// facets keeps the surfaces that were looked at last, so that a screen that is
// drawn anew asks a worker for nothing but what has changed. A shape is what
// its hash says, so what is kept never grows old.
type facets struct {
	most int // bytes

	mu   sync.Mutex
	size int
	used *list.List // of *faceted, the one used last first
	by   map[facetKey]*list.Element
}

// facetKey names a surface: no tenant sees what another has looked at.
type facetKey struct{ tenant, kernel, shape string }

type faceted struct {
	facetKey

	surface Surface // without an entity's id
	size    int
}

// mostFacets is about 700,000 triangles.
const mostFacets = 32 << 20

func newFacets(most int) *facets {
	return &facets{most: most, used: list.New(), by: map[facetKey]*list.Element{}}
}

// of finds the surface of a shape, as the entity that is made of it. It has no
// mesh when it is not kept.
func (f *facets) of(k facetKey, entity string) Surface {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.by[k]
	if at == nil {
		return Surface{EntityID: entity}
	}
	f.used.MoveToFront(at)
	s := at.Value.(*faceted).surface
	s.EntityID = entity
	return s
}

// keep keeps a surface, and lets go of those that were not used for longest.
func (f *facets) keep(k facetKey, s Surface) {
	size := bytesOf(s.Mesh)
	if size > f.most/4 {
		return // one must not drive out all others
	}
	s.EntityID = ""
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by[k] != nil { // two looked at once
		return
	}
	f.by[k] = f.used.PushFront(&faceted{k, s, size})
	for f.size += size; f.size > f.most; {
		last := f.used.Remove(f.used.Back()).(*faceted)
		delete(f.by, last.facetKey)
		f.size -= last.size
	}
}

func bytesOf(m *mesh.Mesh) int {
	return 24*len(m.Vertices) + 12*len(m.Triangles) + 4*len(m.Faces) + 256
}
