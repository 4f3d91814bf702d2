package cell

import (
	"testing"

	"swarmdeck/expect"
)

func TestAWallWithAHoleSaysWhichItIs(t *testing.T) {
	for _, c := range []struct {
		profile         Profile
		missing, writes []string
		want            string
	}{
		{Worker, []string{layerCgroup, layerBounds, layerProcfs}, nil, ""},
		{Reader, nil, nil, ""},
		{Open, nil, nil, "its profile is open: nothing stands around it"},
		{Worker, []string{layerSpaces}, nil, "the wall around it has no name spaces"},
		{Worker, []string{layerLandlock}, nil, "the wall around it has no landlock"},
		{Reader, []string{layerCgroup, layerSeccomp}, nil, "the wall around it has no seccomp"},
		{Worker, nil, []string{"/srv/shared"}, "it may write /srv/shared as well"},
	} {
		expect.Is(t, Loose(c.profile, c.missing, c.writes), c.want, c.profile, "without", c.missing, "writing", c.writes)
	}
}
