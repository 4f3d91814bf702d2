#!/bin/sh
# A robot that is not there. It reads what it is to do as one JSON document and
# answers with one JSON object. Where a file "dark" lies beside it, it
# sees nothing; one "flicker" makes it see nothing once.
in=$(cat)
case $1 in
navigate)
	echo '{"final_position":{"x":10,"y":5}}' ;;
detect)
	if [ -e dark ]; then
		echo "it is too dark to see anything" >&2
		exit 1
	fi
	if [ -e flicker ]; then
		rm flicker
		echo "the light flickers" >&2
		exit 1
	fi
	echo '{"objects":["cup","plate"],"object_id":"cup"}' ;;
guess)
	echo '{"objects":["mug"],"object_id":"mug"}' ;;
grasp)
	what=$(printf %s "$in" | sed 's/.*"object_id":"\([^"]*\)".*/\1/')
	echo "takes the $what" >&2
	echo '{"grasped":true}' ;;
esac
