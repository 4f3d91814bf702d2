package env_test

import (
	"fmt"
	"math"
	"testing"

	"swarmdeck/expect"
)

// rectangle draws four lines in z = 0.
func (c *client) rectangle(x, y, w, h float64) string {
	c.t.Helper()
	corner := [][2]float64{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}
	ids := ""
	for i, p := range corner {
		q := corner[(i+1)%4]
		out := c.do("entity.create_line", fmt.Sprintf(`{"start":[%g,%g],"end":[%g,%g]}`, p[0], p[1], q[0], q[1]))
		if i > 0 {
			ids += ","
		}
		ids += fmt.Sprintf("%q", out["entity_id"])
	}
	return ids
}

func TestAHousingIsMadeOfCurves(t *testing.T) {
	c := start(t)
	base := c.do("solid.extrude", fmt.Sprintf(`{"entity_ids":[%s],"distance":20,"entity_id":"housing"}`, c.rectangle(0, 0, 100, 80)))
	c.near("volume", base["volume"], 160000, 1e-9)
	expect.Is(t, fmt.Sprint(base["topology"]), "map[edge_count:12 face_count:6 is_closed:true is_manifold:true vertex_count:8]")
	c.do("entity.create_circle", `{"center":[50,40],"radius":10,"entity_id":"hole"}`)
	tool := c.do("solid.extrude", `{"entity_id":"hole","distance":30}`)
	c.near("cylinder", tool["volume"], math.Pi*100*30, 2e-3)
	out := c.do("solid.boolean.subtract", fmt.Sprintf(`{"entity_ids":["housing",%q],"entity_id":"housing"}`, tool["entity_id"]))
	c.near("drilled", out["volume"], 160000-math.Pi*100*20, 2e-4)
	list := c.do("entity.list", `{"entity_type":"solid"}`)
	expect.Is(t, list["total_count"], 1.0, "the tool stays", list)
	mass := c.do("measure.mass", `{"entity_id":"housing","density":2.7}`)
	c.near("mass", mass["mass"], 2.7e-3*mass["volume"].(float64), 1e-9)
	bounds := c.do("measure.bbox", `{"entity_id":"housing"}`)
	expect.Is(t, fmt.Sprint(bounds["size"]), "[100 80 20]", bounds)
}

func TestSolidsOfAnyPlane(t *testing.T) {
	for _, tt := range []struct {
		name   string
		points [][3]float64
		params string
		volume float64
		min    string
		max    string
	}{
		{"flat", [][3]float64{{0, 0, 5}, {10, 0, 5}, {10, 10, 5}, {0, 10, 5}}, `"distance":3`, 300, "[0 0 5]", "[10 10 8]"},
		{"clockwise", [][3]float64{{0, 0, 5}, {0, 10, 5}, {10, 10, 5}, {10, 0, 5}}, `"distance":3`, 300, "[0 0 5]", "[10 10 8]"},
		{"down", [][3]float64{{0, 0, 5}, {10, 0, 5}, {10, 10, 5}, {0, 10, 5}}, `"distance":-3`, 300, "[0 0 2]", "[10 10 5]"},
		{"upright in x", [][3]float64{{2, 0, 0}, {2, 10, 0}, {2, 10, 10}, {2, 0, 10}}, `"distance":4`, 400, "[2 0 0]", "[6 10 10]"},
		{"upright in y", [][3]float64{{0, 2, 0}, {10, 2, 0}, {10, 2, 10}, {0, 2, 10}}, `"distance":4`, 400, "[0 2 0]", "[10 6 10]"},
		{"oblique", [][3]float64{{0, 0, 0}, {10, 0, 0}, {10, 10, 0}, {0, 10, 0}}, `"distance":10,"direction":[0,0.6,0.8]`, 800, "[0 0 0]", "[10 16 8]"},
		{"tilted", [][3]float64{{0, 0, 0}, {10, 0, 0}, {10, 6, 8}, {0, 6, 8}}, `"distance":5`, 500, "[0 -4 0]", "[10 6 11]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t)
			ids := ""
			for i, p := range tt.points {
				if i > 0 {
					ids += ","
				}
				ids += fmt.Sprintf("%q", c.do("entity.create_point", fmt.Sprintf(`{"coordinates":[%g,%g,%g]}`, p[0], p[1], p[2]))["entity_id"])
			}
			out := c.do("solid.extrude", fmt.Sprintf(`{"entity_ids":[%s],%s}`, ids, tt.params))
			c.near("volume", out["volume"], tt.volume, 1e-6)
			box := out["bounding_box"].(map[string]any)
			for i := range 3 {
				var low, high [3]float64
				fmt.Sscanf(tt.min, "[%g %g %g]", &low[0], &low[1], &low[2])
				fmt.Sscanf(tt.max, "[%g %g %g]", &high[0], &high[1], &high[2])
				c.near("min", box["min"].([]any)[i], low[i], 1e-5)
				c.near("max", box["max"].([]any)[i], high[i], 1e-5)
			}
		})
	}
}

func TestRevolvedSolids(t *testing.T) {
	c := start(t)
	ids := c.rectangle(10, 0, 5, 20)
	ring := c.do("solid.revolve", fmt.Sprintf(`{"entity_ids":[%s],"axis_point":[0,0],"axis_direction":[0,1,0],"angle":%g}`, ids, 2*math.Pi))
	c.near("ring", ring["volume"], math.Pi*(225-100)*20, 2e-3)
	half := c.do("solid.revolve", fmt.Sprintf(`{"entity_ids":[%s],"axis_point":[0,0],"axis_direction":[0,-1,0],"angle":%g}`, ids, math.Pi/2))
	c.near("quarter", half["volume"], math.Pi*(225-100)*5, 2e-3)
	// From +x a quarter turn about -y comes to +z.
	box := half["bounding_box"].(map[string]any)
	c.near("min z", box["min"].([]any)[2], 0, 1e-5)
	c.near("max z", box["max"].([]any)[2], 15, 1e-3)
	c.do("entity.create_circle", `{"entity_id":"c","center":[30,0,0],"radius":5,"normal":[0,1,0]}`)
	torus := c.do("solid.revolve", fmt.Sprintf(`{"profile_entity_id":"c","axis_point":[0,0,0],"axis_direction":[0,0,1],"angle":%g}`, 2*math.Pi))
	c.near("torus", torus["volume"], 2*math.Pi*math.Pi*30*25, 5e-3)
}

func TestSolidsAreChanged(t *testing.T) {
	c := start(t)
	c.box("a", [3]float64{}, [3]float64{10, 10, 10})
	row := c.do("solid.pattern", `{"base_entity_id":"a","direction":[1,0,0],"spacing":20,"count":3,"entity_id":"row"}`)
	c.near("row", row["volume"], 3000, 1e-6)
	c.fails(-32001, "base_entity_id", "solid.mirror", `{"base_entity_id":"a","mirror_plane_point":[0,0,0],"mirror_plane_normal":[1,0,0]}`)
	other := c.do("solid.mirror", `{"base_entity_id":"row","mirror_plane_point":[-10,0,0],"mirror_plane_normal":[1,0,0]}`)
	expect.Is(t, fmt.Sprint(other["bounding_box"]), "map[max:[-20 10 10] min:[-70 0 0]]")
	turned := c.do("solid.transform", fmt.Sprintf(`{"entity_id":"row","rotate":{"axis_point":[0,0,0],"axis_direction":[0,0,1],"angle":%g},"translate":[0,0,5]}`, math.Pi/2))
	got := fmt.Sprint(turned["bounding_box"])
	expect.True(t, got == "map[max:[0 50 15] min:[-10 0 5]]" && turned["entity_id"] == "row", "%v %v", got, turned["entity_id"])
	c.do("solid.primitive", `{"primitive_type":"cylinder","radius":1,"height":5,"axis_point":[20,0,0],"entity_id":"pin"}`)
	pins := c.do("solid.pattern.circular", `{"base_entity_id":"pin","axis_point":[0,0,0],"axis_direction":[0,0,1],"count":6}`)
	c.near("pins", pins["volume"], 6*math.Pi*5, 2e-2)
	for _, method := range []string{`solid.fillet","params":{"entity_id":"row","radius":1}`, `solid.chamfer","params":{"entity_id":"row","distance":1}`, `solid.shell","params":{"entity_id":"row","thickness":1}`} {
		c.send(`{"jsonrpc":"2.0","id":"x","method":"` + method + `}`)
		if r := c.receive(); r.Error == nil || r.Error.Code != -32020 || r.Error.Data.Suggestion != "start the environment with --kernel occt" {
			t.Errorf("%s: %+v", method, r.Error)
		}
	}
}

func TestPrimitivesHaveTheirVolume(t *testing.T) {
	c := start(t)
	for params, volume := range map[string]float64{
		`"primitive_type":"box","width":2,"depth":3,"height":4`:               24,
		`"primitive_type":"cylinder","radius":5,"height":10`:                  math.Pi * 250,
		`"primitive_type":"sphere","radius":5,"center":[1,2,3]`:               math.Pi * 500 / 3,
		`"primitive_type":"cone","radius1":5,"radius2":0,"height":12`:         math.Pi * 100,
		`"primitive_type":"cone","radius1":0,"radius2":5,"height":12`:         math.Pi * 100,
		`"primitive_type":"cylinder","radius":5,"height":10,"tolerance":1e-4`: math.Pi * 250,
	} {
		out := c.do("solid.primitive", "{"+params+"}")
		c.near(params, out["volume"], volume, 5e-3)
		expect.Is(t, out["topology"].(map[string]any)["is_closed"], true, out)
	}
}
