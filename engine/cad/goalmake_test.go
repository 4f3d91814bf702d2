package cad

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// cyl is the volume of a cylinder by its diameter.
func cyl(d, l float64) float64 { return math.Pi / 4 * d * d * l }

func box(x, y, z float64) made { return made{[3]float64{x, y, z}, x * y * z} }

// less is a solid without some volumes.
func (m made) less(volumes ...float64) made {
	for _, v := range volumes {
		m.volume -= v
	}
	return m
}

func rod(d, l float64) made { return made{[3]float64{d, d, l}, cyl(d, l)} }

// round is a prism with corners of a radius.
func round(x, y, z, r float64) made {
	return made{[3]float64{x, y, z}, (x*y - (4-math.Pi)*r*r) * z}
}

type parts map[string]made

func one(name string, m made) parts { return parts{name: m} }

// openBox is a box with a cavity.
func openBox(x, y, z, wall float64) made {
	return box(x, y, z).less((x - 2*wall) * (y - 2*wall) * (z - wall))
}

// lidOf is the lid of a box: a plate, and a key as deep as the wall.
func lidOf(x, y, wall, thick float64) made {
	in := wall + 0.2
	return made{[3]float64{x, y, thick + wall}, x*y*thick + (x-2*in)*(y-2*in)*wall}
}

// goals are texts with the solids that they mean, by closed forms.
func goals() map[string]parts {
	angle := func(base, up, width, t float64) made {
		return made{[3]float64{base, width, up}, width * (base*t + (up-t)*t)}
	}
	feet := func(n int, d, h float64) parts {
		all := parts{}
		for i := range n {
			all[fmt.Sprintf("support_%d", i+1)] = rod(d, h)
		}
		return all
	}
	with := func(all parts, more parts) parts { maps.Copy(all, more); return all }
	plate := box(100, 80, 5)
	keyed := rod(20, 100).less((3*math.Sqrt(91) + 100*math.Asin(0.3) - 6*(10-3.5)) * 40)
	return map[string]parts{
		// Boxes
		"a box 100x80x20 mm, no lid":                                     one("box", openBox(100, 80, 20, 3)),
		"box 100x80x20mm, no lid":                                        one("box", openBox(100, 80, 20, 3)),
		"a box 100x80x20 without lid":                                    one("box", openBox(100, 80, 20, 3)),
		"a box 100x80x20 mm without a cover, wall 2":                     one("box", openBox(100, 80, 20, 2)),
		"an open box 100x80x20":                                          one("box", openBox(100, 80, 20, 3)),
		"box 100x80x20, open top":                                        one("box", openBox(100, 80, 20, 3)),
		"box 100x80x20 open at the top":                                  one("box", openBox(100, 80, 20, 3)),
		"a box with lid, 100x80x20 mm":                                   {"box": openBox(100, 80, 20, 3), "lid": lidOf(100, 80, 3, 3)},
		"Box and lid 10 x 8 x 2 cm, wall 2 mm":                           {"box": openBox(100, 80, 20, 2), "lid": lidOf(100, 80, 2, 2)},
		"box 100x80x20 with a 5 mm lid":                                  {"box": openBox(100, 80, 20, 3), "lid": lidOf(100, 80, 3, 5)},
		"box 100x80x20, lid 5 thick, wall thickness 2":                   {"box": openBox(100, 80, 20, 2), "lid": lidOf(100, 80, 2, 5)},
		"an enclosure 60×40×30":                                          one("box", openBox(60, 40, 30, 3)),
		"please make me a hollow box of 60 by 40 by 30 mm":               one("box", openBox(60, 40, 30, 3)),
		"box 100 by 80 by 20 mm":                                         one("box", openBox(100, 80, 20, 3)),
		"box 10 cm x 80 mm x 0.02 m":                                     one("box", openBox(100, 80, 20, 3)),
		"box 10x8x2 in cm":                                               one("box", openBox(100, 80, 20, 3)),
		"box 100x80x20 in mm":                                            one("box", openBox(100, 80, 20, 3)),
		"box 4 inches x 3 in x 2 in tall":                                one("box", openBox(101.6, 76.2, 50.8, 3)),
		`box 4x3x2", wall of 2 mm`:                                       one("box", openBox(101.6, 76.2, 50.8, 2)),
		"box 10mmx20mmx30mm":                                             one("box", openBox(10, 20, 30, 2)),
		"box of length 100, width 80 and height 2 cm":                    one("box", openBox(100, 80, 20, 3)),
		"box 100 mm long, 80 mm wide, 20 mm high, 2 mm thick walls":      one("box", openBox(100, 80, 20, 2)),
		"box 100x80x20 with corner radius 5, wall 2":                     one("box", round(100, 80, 20, 5).less((96*76-(4-math.Pi)*9)*18)),
		"box 100x80x20 with rounded corners of 5 mm, walls 2 mm":         one("box", round(100, 80, 20, 5).less((96*76-(4-math.Pi)*9)*18)),
		"box 100x80x20, no lid, no holes, no thread":                     one("box", openBox(100, 80, 20, 3)),
		"an assembly 100x80x20 mm of housing, lid and four supports":     with(parts{"box": openBox(100, 80, 20, 3), "lid": lidOf(100, 80, 3, 3)}, feet(4, 13.333333, 10)),
		"assembly 100x80x20 with 3 supports":                             with(parts{"box": openBox(100, 80, 20, 3)}, feet(3, 13.333333, 10)),
		"a box 100x80x20 with four feet, diameter 10, height 15":         with(parts{"box": openBox(100, 80, 20, 3)}, feet(4, 10, 15)),
		"box 100x80x20 with two feet 10 diameter and 15 high and no lid": with(parts{"box": openBox(100, 80, 20, 3)}, feet(2, 10, 15)),
		// Blocks and plates
		"block 30x20x10": one("block", box(30, 20, 10)),
		"a solid block, length 30, width 20, height 10 mm": one("block", box(30, 20, 10)),
		"a plate 100x80x5":               one("plate", plate),
		"plate 100 long 80 wide 5 thick": one("plate", plate),
		"plate 100x80x5 with 4 holes diameter 6 at the corners, 10 mm from the edges":               one("plate", plate.less(4*cyl(6, 5))),
		"plate 100x80x5, four 6 mm holes in the corners, 10 from the edges":                         one("plate", plate.less(4*cyl(6, 5))),
		"plate 100x80x5 with a hole of 20 in the centre":                                            one("plate", plate.less(cyl(20, 5))),
		"plate 100x80x5 with a 20 mm hole in the middle":                                            one("plate", plate.less(cyl(20, 5))),
		"plate 100x80x5 with a through hole radius 10 in the centre":                                one("plate", plate.less(cyl(20, 5))),
		"plate 100x80x5 corner radius 8":                                                            one("plate", round(100, 80, 5, 8)),
		"plate 100x80x5, 8 mm corner radius":                                                        one("plate", round(100, 80, 5, 8)),
		"plate 100x80x5 with corners rounded 8 mm and 4 holes ø6 at the corners, 10 from the edges": one("plate", round(100, 80, 5, 8).less(4*cyl(6, 5))),
		"plate 100x80x5 with a slot 40 long and 8 wide in the centre":                               one("plate", plate.less((32*8+cyl(8, 1))*5)),
		"plate 100x80x5 with a boss diameter 20 height 10 in the centre":                            one("plate", made{[3]float64{100, 80, 15}, 40000 + cyl(20, 10)}),
		"plate 100x80x5 with a boss 20 mm diameter, 10 high, in the centre and 4 holes of 6 at the corners, 10 from the edges": one("plate",
			made{[3]float64{100, 80, 15}, 40000 + cyl(20, 10) - 4*cyl(6, 5)}),
		"plate 100x80x5 with a hole of 6 at each corner, 10 from each edge": one("plate", plate.less(4*cyl(6, 5))),
		"sheet 200x100x1": one("plate", box(200, 100, 1)),
		// Brackets
		"a bracket 60x40x5 mm":                                 one("bracket", angle(60, 60, 40, 5)),
		"L-shaped bracket 60x40x5":                             one("bracket", angle(60, 60, 40, 5)),
		"an angle bracket 60x40x5":                             one("bracket", angle(60, 60, 40, 5)),
		"an angle 60x40x5":                                     one("bracket", angle(60, 60, 40, 5)),
		"L bracket 60x50x40x5 mm with two holes diameter 6 mm": one("bracket", angle(60, 50, 40, 5).less(2*cyl(6, 5))),
		"bracket 60x40x5 with 3 holes ø4":                      one("bracket", angle(60, 60, 40, 5).less(3*cyl(4, 5))),
		"bracket 60x40x5 mm with two 6 mm holes":               one("bracket", angle(60, 60, 40, 5).less(2*cyl(6, 5))),
		"bracket 60x40x5 with a hole of radius 3":              one("bracket", angle(60, 60, 40, 5).less(cyl(6, 5))),
		"bracket 60x40x5, no holes":                            one("bracket", angle(60, 60, 40, 5)),
		// Shafts and cylinders
		"a shaft, diameter 20 mm, length 100 mm":                                      one("shaft", rod(20, 100)),
		"shaft ø20 100 mm long":                                                       one("shaft", rod(20, 100)),
		"a shaft 20 mm in diameter and 100 mm in length":                              one("shaft", rod(20, 100)),
		"shaft ø20x100":                                                               one("shaft", rod(20, 100)),
		"shaft 20 mm diameter 100 mm length":                                          one("shaft", rod(20, 100)),
		"shaft of radius 10 and length 100":                                           one("shaft", rod(20, 100)),
		"shaft diameter 2 inches, length 1 ft":                                        one("shaft", rod(50.8, 304.8)),
		"rod: d = 20, l = 100":                                                        one("shaft", rod(20, 100)),
		"stepped shaft: diameter 30 length 80, diameter 20 length 50":                 one("shaft", made{[3]float64{30, 30, 130}, cyl(30, 80) + cyl(20, 50)}),
		"stepped shaft 30 diameter 80 long, 20 diameter 50 long, 10 diameter 20 long": one("shaft", made{[3]float64{30, 30, 150}, cyl(30, 80) + cyl(20, 50) + cyl(10, 20)}),
		"stepped shaft 20x50 and 16x30 mm with a bore of 6":                           one("shaft", made{[3]float64{20, 20, 80}, cyl(20, 50) + cyl(16, 30) - cyl(6, 80)}),
		"shaft 20x50 and 16x30 mm with bore diameter 6":                               one("shaft", made{[3]float64{20, 20, 80}, cyl(20, 50) + cyl(16, 30) - cyl(6, 80)}),
		"shaft diameter 20 length 100 bore 6":                                         one("shaft", rod(20, 100).less(cyl(6, 100))),
		"shaft diameter 20 length 100 with an inner diameter of 8":                    one("shaft", rod(20, 100).less(cyl(8, 100))),
		"shaft diameter 20 length 100 with a keyway 6 wide 3.5 deep 40 long":          one("shaft", keyed),
		"shaft diameter 20 length 100 with a keyway, width 6, depth 3.5, length 40":   one("shaft", keyed),
		"a cylinder of diameter 40 and height 25":                                     one("cylinder", rod(40, 25)),
		"cylinder 40x25": one("cylinder", rod(40, 25)),
		"solid cylinder, radius 20 mm, 25 mm tall": one("cylinder", rod(40, 25)),
		"disc ø40, 3 thick":                        one("cylinder", rod(40, 3)),
		"hollow cylinder 40x25 with bore 10":       one("cylinder", rod(40, 25).less(cyl(10, 25))),
		// Tubes, washers, flanges
		"tube outer diameter 30 inner diameter 26 length 100":                                         one("tube", rod(30, 100).less(cyl(26, 100))),
		"tube od 30, wall 2, length 100":                                                              one("tube", rod(30, 100).less(cyl(26, 100))),
		"pipe with inner diameter 26, 2 mm wall, 100 mm long":                                         one("tube", rod(30, 100).less(cyl(26, 100))),
		"tube 30 mm outer diameter, 2 mm wall thickness, 100 mm long":                                 one("tube", rod(30, 100).less(cyl(26, 100))),
		"tube od 30 id 26 wall 2 length 100":                                                          one("tube", rod(30, 100).less(cyl(26, 100))),
		"washer outer diameter 12, inner diameter 6.4, thickness 1.6":                                 one("washer", rod(12, 1.6).less(cyl(6.4, 1.6))),
		"flat washer, od 12, id 6.4, 1.6 mm thick":                                                    one("washer", rod(12, 1.6).less(cyl(6.4, 1.6))),
		"a ring of outer radius 10, inner radius 8, height 4":                                         one("washer", rod(20, 4).less(cyl(16, 4))),
		"flange diameter 120, thickness 10":                                                           one("flange", rod(120, 10)),
		"flange 120x10 with bore 40":                                                                  one("flange", rod(120, 10).less(cyl(40, 10))),
		"flange diameter 120 thickness 10 with bore 40 and 6 holes diameter 9 on a bolt circle of 90": one("flange", rod(120, 10).less(cyl(40, 10), 6*cyl(9, 10))),
		"flange diameter 120 thickness 10 with bore 40 and 6 holes diameter 9, bolt circle 90":        one("flange", rod(120, 10).less(cyl(40, 10), 6*cyl(9, 10))),
		"flange od 120, 10 thick, 40 mm bore, four 9 mm holes, pcd 90":                                one("flange", rod(120, 10).less(cyl(40, 10), 4*cyl(9, 10))),
	}
}

func TestAGoalMakesWhatItSaysOrIsRefused(t *testing.T) {
	kernel, roles := kernelOf(t), testRoles(t)
	makes := 0
	for goal, want := range goals() {
		s, err := planFor(goal)
		if err != nil {
			expect.Is(t, core.AsError(err).Code, core.InvalidInput, goal, err)
			continue
		}
		makes++
		s, problems := s.check(roles)
		if len(problems) > 0 {
			t.Errorf("%s: %v", goal, problems.err())
			continue
		}
		got := carryOut(t, kernel, s)
		expect.Same(t, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), goal, "it makes")
		for name, w := range want {
			expect.True(t, got[name].near(w), "%s: %s is %+v, want %+v", goal, name, got[name], w)
		}
		text := string(core.MustEncode(s))
		expect.True(t, !strings.Contains(text, "99999") && !strings.Contains(text, "00000"), "%s: a number is not for people: %s", goal, text)
	}
	expect.True(t, makes >= 45, "%d goals are made", makes)
}

// planText is what a goal comes to, without its own words; "" when it is refused.
func planText(goal string) string {
	s, err := planFor(goal)
	if err != nil {
		return ""
	}
	s.Description = ""
	return string(core.MustEncode(s))
}

func TestNoWordOfAGoalIsPassedOver(t *testing.T) {
	same := strings.Fields("on stepped open top without no lid cover housing thick thickness length diameter wall") // where the goal says it otherwise too
	for goal := range goals() {
		words, was := strings.Fields(strings.ToLower(goal)), planText(goal)
		if was == "" {
			continue
		}
		for i, w := range words {
			w = strings.Trim(w, ",:")
			less := strings.Join(slices.Delete(slices.Clone(words), i, i+1), " ")
			if w != "mm" && !slices.Contains(slices.Concat(goalWording().dropped, goalWording().separates, same), w) && planText(less) == was {
				t.Errorf("%q: without %q it makes the same", goal, w)
			}
		}
		for i := range len(words) + 1 {
			for _, extra := range []string{"zorble", "7", "7 mm", "7x7", "°", "<", "/", "'", "threaded", "steel", "round", "no"} {
				more := strings.Join(slices.Insert(slices.Clone(words), i, extra), " ")
				expect.True(t, planText(more) != was, "%q: it makes the same as without %q", more, extra)
			}
		}
	}
}
