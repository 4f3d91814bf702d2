package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/solid"
	"swarmdeck/ui/term"
)

// solidView is what `cad view` is asked for.
type solidView struct {
	angle, view, size, mode string
	density                 float64

	w, h int
	solid.Look
}

func (t *tree) cadView() *cobra.Command {
	var l solidView
	return t.command(spec{
		use: "view WORKSPACE [ENTITY]", short: "Draw the solids of a workspace as text", effect: Reads, args: []string{"workspace", "entity"},
		long: "Draw the solids of a workspace, or one of them, as text: visible edges in braille, shaded on a terminal with true\n" +
			"colour, in plain characters with --ascii, and not at all with --accessible. Below stand the size, volume, mass and\n" +
			"validity of each. Millimetres.",
		example: "cad view main\ncad view housing lid --view all --size 120x40\ncad view main --angle 30,20",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &l.view, "view", "", "", "from where: front|top|right|iso|all (default iso)", "front", "top", "right", "iso", "all")
			f.StringVar(&l.angle, "angle", "", "from where, in degrees: `YAW`[,PITCH[,ROLL]]; yaw from the front to the right, pitch up")
			f.StringVar(&l.size, "size", "80x24", "size of the picture, `WxH` cells")
			enumVar(f, &l.mode, "mode", "", "auto", "auto|lines|shaded", "auto", "lines", "shaded")
			f.Float64Var(&l.density, "density", 1, "density in `G/CM3` for the mass")
		},
		check: func(*call, []string) error { return l.read() },
		run:   func(c *call, args []string) error { return c.drawSolids(&l, args[0], args[1:]) },
	})
}

// Bounds of a picture printed as text.
const (
	leastViewW, leastViewH = 10, 5
	mostViewW, mostViewH   = 320, 160
)

// read checks the flags.
func (l *solidView) read() (err error) {
	switch {
	case l.angle != "" && l.view != "":
		return usage("angle", "--angle and --view both given; use one")
	case l.angle != "":
		if l.Camera, err = solid.ParseAngle(l.angle); err != nil {
			return err
		}
	case l.view == "all":
		l.Four = true
	default:
		l.Camera, _ = solid.ViewOf(cmp.Or(l.view, "iso"))
	}
	w, h, _ := strings.Cut(l.size, "x")
	if l.w, err = strconv.Atoi(w); err == nil {
		l.h, err = strconv.Atoi(h)
	}
	if err != nil || l.w < leastViewW || l.w > mostViewW || l.h < leastViewH || l.h > mostViewH {
		return core.Invalid("size", l.size, fmt.Sprintf("WxH from %dx%d to %dx%d", leastViewW, leastViewH, mostViewW, mostViewH))
	}
	if !(l.density > 0 && l.density <= 100) {
		return core.Invalid("density", l.density, "above 0, up to 100 g/cm³")
	}
	return nil
}

// viewed is what `cad view` prints with -o json.
type viewed struct {
	WorkspaceID string      `json:"workspace_id"`
	View        string      `json:"view"`
	MMPerCell   float64     `json:"mm_per_cell"`
	Bounds      mesh.Box    `json:"bounding_box"`
	Solids      []viewedOne `json:"solids"`
	More        int         `json:"not_shown,omitempty"`
	Note        string      `json:"note,omitempty"`
	Picture     []string    `json:"picture"`
}

// viewedOne is one solid of the picture.
type viewedOne struct {
	EntityID string `json:"entity_id"`
	Sign     string `json:"sign"` // its letter in the picture
	model.Facts
	Mass  float64 `json:"mass"` // g
	Valid bool    `json:"valid"`
}

func (c *call) drawSolids(l *solidView, workspace string, ids []string) error {
	surfaces, more, err := c.eng.CAD.Surfaces(c.ctx, c.by.Tenant, workspace, ids...)
	if err != nil {
		return err
	}
	entities, err := c.eng.CAD.AllEntities(c.ctx, c.by.Tenant, workspace)
	if err != nil {
		return err
	}
	scene := solid.OfSurfaces(surfaces)
	out := viewed{
		WorkspaceID: workspace, View: l.Camera.Name(), More: more, Picture: []string{},
		Bounds: scene.Box(), Solids: []viewedOne{},
	}
	if l.Four {
		out.View = "all"
	}
	if out.Solids, err = viewedOf(surfaces, entities, l.density); err != nil {
		return err
	}
	caps, tty := c.terminal()
	theme, err := LoadTheme(c.env.getenv, c.g.Theme)
	if err != nil {
		return err
	}
	canvas := screen.New(l.w, l.h)
	if caps.ASCII {
		canvas.SetGlyphs(screen.ASCII())
	}
	l.Tints = tty && caps.Color == colorprofile.TrueColor && theme.Colored() && c.g.Output != "json"
	l.Mode = solid.Best(l.Tints)
	for m := range solid.Modes {
		if l.mode == m.String() {
			l.Mode = m
		}
	}
	var v solid.View
	v.Draw(canvas, canvas.Bounds(), scene, l.Look)
	out.MMPerCell, out.Picture = v.Scale(), canvas.Plain()
	out.Note = strings.Trim(scene.Note()+"; "+v.Note(), "; ")
	return c.print(out, func(w io.Writer) error {
		if scene.Empty() {
			_, err := fmt.Fprintf(w, "workspace %s has no solid\n", term.Clean(workspace))
			return err
		}
		if caps.Accessible {
			return out.legend(c, w)
		}
		if tty && caps.Color > colorprofile.ASCII {
			colored := colorprofile.Writer{Forward: w, Profile: caps.Color}
			if _, err := io.WriteString(&colored, canvas.Render(theme)+"\n"); err != nil {
				return err
			}
		} else {
			fmt.Fprintln(w, strings.Join(out.Picture, "\n"))
		}
		return out.legend(c, w)
	})
}

// terminal is what can be printed to, and whether that is the operator's own
// terminal.
func (c *call) terminal() (term.Caps, bool) {
	file, ok := c.env.Stdout.(*os.File)
	tty := ok && !c.env.Attached && c.env.Caller.Door == core.DoorCLI && term.IsTerminal(file)
	return term.Detect(c.env.getenv, tty, tty, c.g.Screen()), tty || c.g.Color == "always"
}

// viewedOf puts the facts of solids to their surfaces.
func viewedOf(surfaces []cad.Surface, entities []model.Entity, density float64) ([]viewedOne, error) {
	facts := map[string]model.Facts{}
	for _, e := range entities {
		if e.Type != model.Solid {
			continue
		}
		f, err := model.FactsOf(e)
		if err != nil {
			return nil, err
		}
		facts[e.ID] = f
	}
	out := make([]viewedOne, len(surfaces))
	for i, s := range surfaces {
		f := facts[s.EntityID]
		out[i] = viewedOne{EntityID: s.EntityID, Sign: string(solid.Sign(i + 1)), Facts: f, Mass: f.Volume / 1000 * density, Valid: f.Valid()}
	}
	return out, nil
}

// legend says in words what the picture shows.
func (v *viewed) legend(c *call, w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, a cell is %s mm wide", v.View, solid.Short(v.MMPerCell))
	b.WriteByte('\n')
	c.table(&b, viewedFace(), v.Solids)
	if v.More > 0 {
		fmt.Fprintf(&b, "%d more solids are not shown; name one\n", v.More)
	}
	if v.Note != "" {
		fmt.Fprintln(&b, v.Note)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func viewedFace() *face.Face {
	number := func(of func(s *viewedOne) float64) func(*viewedOne, face.At) string {
		return func(s *viewedOne, _ face.At) string { return solid.Number(of(s)) }
	}
	return face.Of[viewedOne]{
		Columns: "_:sign SOLID:entity_id SIZE VOLUME_mm3,right MASS_g,right FACES,right TOLERANCE_mm,right SURFACE",
		Cells: face.Cells[viewedOne]{
			"SIZE":         func(s *viewedOne, _ face.At) string { return solid.Extent(s.Bounds.Size()) },
			"VOLUME_mm3":   number(func(s *viewedOne) float64 { return s.Volume }),
			"MASS_g":       number(func(s *viewedOne) float64 { return s.Mass }),
			"FACES":        func(s *viewedOne, _ face.At) string { return fmt.Sprint(s.Topology.Faces) },
			"TOLERANCE_mm": func(s *viewedOne, _ face.At) string { return solid.Short(s.Tolerance) },
			"SURFACE":      func(s *viewedOne, _ face.At) string { return s.Validity() },
		},
	}.Face()
}
