package rules

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil { // the whole house
		panic(err)
	}
	os.Exit(m.Run())
}
