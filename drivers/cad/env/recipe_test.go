package env_test

import (
	"errors"
	"math"
	"testing"

	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/profile"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// checkRecipe reads a shape. What can be read makes the same shape again, and
// what can't is refused with an *Error.
func checkRecipe(t *testing.T, op string, params []byte, inputs int) {
	t.Helper()
	s := model.Shape{Op: op, Params: core.Raw(params)}
	for range inputs {
		s.Inputs = append(s.Inputs, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	}
	r, err := env.DecodeRecipe(s)
	if err != nil {
		var refusal *env.Error
		expect.Must(t, errors.As(err, &refusal) && refusal.Data.Name != "", "%s %s: %v is no refusal", op, params, err)
		return
	}
	once, err := env.NewShape(r, s.Blob, s.Inputs...)
	if err != nil {
		return // of another number of inputs than the op takes
	}
	r, err = env.DecodeRecipe(once)
	expect.No(t, err, op, once.Params)
	twice, err := env.NewShape(r, s.Blob, s.Inputs...)
	expect.Must(t, err == nil && twice.Hash == once.Hash, "%s: %s and %s: %v", op, once.Params, twice.Params, err)
}

func TestARecipeKeepsItsProfileExactly(t *testing.T) {
	arc := profile.Arc(profile.Point{X: 7.3, Y: 4.4}, 1.7, 0.3, 2.5)
	slice := expect.Of(profile.New(arc, profile.Line(arc.To, arc.From)))(t)
	s, err := env.NewShape(&env.Extrude{
		Profile: slice, Plane: env.Plane{XAxis: [3]float64{1, 0, 0}, YAxis: [3]float64{0, 1, 0}}, Vector: [3]float64{0, 0, 3}, Tolerance: 0.01,
	}, "")
	expect.No(t, err)
	checkRecipe(t, s.Op, s.Params, 0)
	r := expect.Of(env.DecodeRecipe(s))(t)
	expect.Same(t, r.(*env.Extrude).Profile.Loops[0], slice.Loops[0])
	back, err := r.(*env.Extrude).Profile.Check()
	expect.True(t, err == nil && back.Area() == slice.Area(), "%v %v, %v", back.Area(), slice.Area(), err)
}

func TestARecipeThatIsNoneIsRefused(t *testing.T) {
	for _, tt := range []struct {
		recipe env.Recipe
		inputs []string
		field  string
	}{
		{&env.Box{Dimensions: [3]float64{1, 1, 0}}, nil, "height"},
		{&env.Box{Dimensions: [3]float64{1, 1, 1}}, []string{"x"}, "inputs"},
		{&env.Box{Dimensions: [3]float64{1, 1, math.NaN()}}, nil, "params"},
		{&env.Boolean{Operation: "union"}, []string{"x"}, "inputs"},
		{&env.Boolean{Operation: "glue"}, []string{"x", "y"}, "op"},
		{&env.Linear{Direction: [3]float64{1}, Spacing: 1, Count: 1}, []string{"x"}, "count"},
		{&env.Fillet{Radius: 0}, []string{"x"}, "radius"},
		{&env.Shell{Thickness: 1, OpenFaces: [][3]float64{{1e9}}}, []string{"x"}, "open_faces"},
		{&env.Import{Format: "STL"}, nil, "blob"},
		{&env.Extrude{}, nil, "x_axis"},
		{&env.Revolve{Plane: env.Plane{XAxis: [3]float64{1}, YAxis: [3]float64{0, 1}}, Axis: [3]float64{0, 0, 1}, Angle: 1}, nil, "axis_point"},
	} {
		_, err := env.NewShape(tt.recipe, "", tt.inputs...)
		var refusal *env.Error
		if !errors.As(err, &refusal) || refusal.Data.Field != tt.field {
			t.Errorf("%s %+v: %v, want field %s", tt.recipe.Op(), tt.recipe, err, tt.field)
		}
	}
}
