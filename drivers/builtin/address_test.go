package builtin

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"

	"swarmdeck/engine/skill"
	"swarmdeck/expect"
)

func TestLinkLocalAndMetadataAddressesAreRefused(t *testing.T) {
	for text, refused := range map[string]bool{
		"169.254.169.254": true, "169.254.0.1": true, "fe80::1": true, "fe80::1%eth0": true, "::ffff:169.254.169.254": true, "::ffff:a9fe:a9fe": true,
		"::169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "ff02::1": true, "224.0.0.251": true, "fd00:ec2::254": true,
		"fd20:ce::254": true, "100.100.100.200": true, "::ffff:100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "93.184.216.34": false, "2606:2800::1": false, "::ffff:127.0.0.1": false, "fd00::1": false,
	} {
		a := netip.MustParseAddr(text)
		var f *skill.Failure
		err := checkAddress(a)
		expect.True(t, errors.As(err, &f) == refused, "%s: %v", text, err)
		address := netip.AddrPortFrom(a, 80).String()
		err = checkDial("tcp", address, nil)
		expect.True(t, (err != nil) == refused, "dial %s: %v", address, err)
		u := &url.URL{Scheme: "http", Host: netip.AddrPortFrom(a.WithZone(""), 80).String()}
		err = checkHost(u)
		expect.True(t, (err != nil) == refused, "%s: %v", u, err)
	}
	expect.Fails(t, checkDial("tcp", "name:80", nil), "what is no address was dialled")
}

func FuzzCheckDial(f *testing.F) {
	for _, seed := range []string{"169.254.169.254:80", "[fe80::1%lo]:80", "x:1", "", ":", "[::]:0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		at, err := netip.ParseAddrPort(address)
		if err == nil && at.Addr().Unmap().IsLinkLocalUnicast() && checkDial("tcp", address, nil) == nil {
			t.Errorf("%s was let through", address)
		}
	})
}
