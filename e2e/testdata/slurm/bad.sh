#!/bin/bash
#SBATCH -a 1-3 -o bad.%a -t 5 --mem=64M
echo "bad $SLURM_ARRAY_TASK_ID"; exit $((SLURM_ARRAY_TASK_ID == 2 ? 7 : 0))
