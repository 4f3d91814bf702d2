package cell

import "testing"

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
		if got := Loose(c.profile, c.missing, c.writes); got != c.want {
			t.Errorf("%s without %v, writing %v: %q, want %q", c.profile, c.missing, c.writes, got, c.want)
		}
	}
}
