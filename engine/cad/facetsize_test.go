package cad

import (
	"fmt"
	"testing"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/expect"
)

func TestSurfacesThatAreKeptTakeNoMoreThanTheyMay(t *testing.T) {
	f := newFacets(10_000)
	key := func(i int) facetKey { return facetKey{"t_home", "", fmt.Sprint(i)} }
	some := func(vertices int) Surface { return Surface{Mesh: &mesh.Mesh{Vertices: make([][3]float64, vertices)}} }
	for i := range 20 {
		f.keep(key(i), some(50)) // 1,456 bytes
		f.keep(key(i), some(50))
		f.of(key(0), "used") // all the time
	}
	kept := 0
	for i := range 20 {
		if !unseen(f.of(key(i), "")) {
			kept++
		}
	}
	expect.True(t, kept == 6 && f.size <= f.most && f.used.Len() == kept && !unseen(f.of(key(0), "")) && !unseen(f.of(key(19), "")),
		"%d are kept, %d bytes", kept, f.size)
	f.keep(key(99), some(200))
	expect.True(t, unseen(f.of(key(99), "")), "one drove out others")
	expect.True(t, unseen(f.of(facetKey{"t_abroad", "", "0"}, "")), "another tenant sees it")
}
