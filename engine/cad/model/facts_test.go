package model

import (
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func TestFactsOfASolid(t *testing.T) {
	of := func(properties string) Entity { return Entity{Type: Solid, Properties: core.Raw(properties)} }
	f, err := FactsOf(of(`{"volume":152566.37,"bounding_box":{"min":[0,0,0],"max":[100,80,20]},"topology":{"face_count":7,"is_closed":true,"is_manifold":true},"tolerance":0.01,"more":1}`))
	expect.No(t, err)
	expect.Is(t, f.Bounds.Size(), [3]float64{100, 80, 20}, "size is")
	if !f.Valid() || f.Validity() != "closed and manifold" {
		t.Errorf("validity is %q", f.Validity())
	}
	f.Topology.Closed = false
	if f.Valid() || f.Validity() != "not closed" {
		t.Errorf("an open surface is %q", f.Validity())
	}
	for _, bad := range []string{``, `[]`, `{"volume":"x"}`} {
		_, err = FactsOf(of(bad))
		expect.Fails(t, err, bad)
	}
}
