// Command swarmdeck is a cockpit for swarms of agents: one binary, one engine
// per data file, and one command language behind every door.
package main

import (
	"os"

	"swarmdeck/app"
	"swarmdeck/drivers/cell"
)

func main() {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		os.Exit(code)
	}
	os.Exit(app.Run(os.Args[1:]))
}
