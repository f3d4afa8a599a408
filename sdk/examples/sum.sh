#!/bin/sh
# Adds the numbers from 1 to $1 and prints the sum. It saves its state when the site wants one, and
# goes on from there when it is started again, here or on another machine.
last=$1 i=0 sum=0
if [ -f "${MRS_CKPT_DIR:-/nowhere}/state" ]; then
  read -r i sum <"$MRS_CKPT_DIR/state"
fi
while [ "$i" -lt "$last" ]; do
  i=$((i + 1)) sum=$((sum + i))
  if [ -f "${MRS_CKPT_DIR:-/nowhere}/wanted" ]; then
    echo $((100 * i / last)) >"$MRS_CKPT_DIR/percent"
    echo "$i $sum" >"$MRS_CKPT_DIR/next" # never write state itself: it may be read at the moment
    mv "$MRS_CKPT_DIR/next" "$MRS_CKPT_DIR/state"
  fi
done
echo "$sum"
