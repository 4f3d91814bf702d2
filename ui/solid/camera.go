package solid

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// Camera says where a scene is seen from. Angles are degrees. Z is up.
type Camera struct {
	Yaw   float64 // about the z axis, from the front to the right
	Pitch float64 // up from the horizon; 90 looks down from the top
	Roll  float64 // about the line of sight
	Zoom  float64 // 1 fits the scene into the picture; 0 counts as 1
	// Pan moves the scene right and up, in parts of the picture's smaller side.
	PanX, PanY float64
}

// view is one that has a name.
type view struct {
	name, title string
	yaw, pitch  float64
}

// views are those of a drawing, in its order.
var views = [...]view{
	{"top", "top (x right, y up)", 0, 90},
	{"iso", "iso", 45, 35.264},
	{"front", "front (x right, z up)", 0, 0},
	{"right", "right (y right, z up)", 90, 0},
}

// ViewOf is a view by its name.
func ViewOf(name string) (Camera, bool) {
	for _, v := range views {
		if v.name == name {
			return Camera{Yaw: v.yaw, Pitch: v.pitch, Zoom: 1}, true
		}
	}
	return Camera{}, false
}

// ParseAngle reads a direction: the name of a view, or degrees as YAW,
// YAW,PITCH or YAW,PITCH,ROLL. Yaw alone is seen from above at the pitch of iso.
func ParseAngle(text string) (Camera, error) {
	if c, ok := ViewOf(text); ok {
		return c, nil
	}
	c, _ := ViewOf("iso")
	words := strings.Split(text, ",")
	for i, w := range words {
		v, err := strconv.ParseFloat(strings.TrimSpace(w), 64)
		if err != nil || !(math.Abs(v) <= 3600) || i > 2 {
			return Camera{}, core.Invalid("angle", text, "front, top, right, iso, or degrees from -3600 to 3600 as YAW[,PITCH[,ROLL]]")
		}
		*[]*float64{&c.Yaw, &c.Pitch, &c.Roll}[i] = v
	}
	return c, nil
}

// Turn rotates the camera; the pitch stays between straight up and down.
func (c *Camera) Turn(yaw, pitch, roll float64) {
	c.Yaw = math.Mod(c.Yaw+yaw+720, 360)
	c.Pitch = min(max(c.Pitch+pitch, -90), 90)
	c.Roll = math.Mod(c.Roll+roll+720, 360)
}

// Name is the name of the view, or its angles in degrees.
func (c Camera) Name() string {
	for _, v := range views {
		if math.Abs(v.yaw-c.Yaw) < 0.01 && math.Abs(v.pitch-c.Pitch) < 0.01 && c.Roll == 0 {
			return v.name
		}
	}
	text := fmt.Sprintf("yaw %.0f pitch %.0f", c.Yaw, c.Pitch)
	if c.Roll != 0 {
		text += fmt.Sprintf(" roll %.0f", c.Roll)
	}
	return text
}

// sane is c with numbers that can be worked with.
func (c Camera) sane() Camera {
	fix := func(v, low, high, instead float64) float64 {
		if math.IsNaN(v) {
			return instead
		}
		return min(max(v, low), high)
	}
	c.Yaw, c.Pitch, c.Roll = fix(c.Yaw, -3600, 3600, 0), fix(c.Pitch, -90, 90, 0), fix(c.Roll, -3600, 3600, 0)
	c.Zoom = fix(cmp.Or(c.Zoom, 1), 0.05, 200, 1)
	c.PanX, c.PanY = fix(c.PanX, -200, 200, 0), fix(c.PanY, -200, 200, 0)
	return c
}

// frame is the directions of the picture in the scene: each row a unit vector.
type frame struct{ right, up, near [3]float64 }

func (c Camera) frame() frame {
	const degree = math.Pi / 180
	sy, cy := math.Sincos(c.Yaw * degree)
	sp, cp := math.Sincos(c.Pitch * degree)
	sr, cr := math.Sincos(c.Roll * degree)
	right := [3]float64{cy, sy, 0}
	up := [3]float64{-sp * sy, sp * cy, cp}
	f := frame{near: [3]float64{cp * sy, -cp * cy, sp}}
	for i := range 3 {
		f.right[i] = cr*right[i] + sr*up[i]
		f.up[i] = cr*up[i] - sr*right[i]
	}
	return f
}
