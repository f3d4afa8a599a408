#!/bin/bash
#SBATCH -J after -o after.out -t 5 --mem=64M
echo "after: $SLURM_JOB_NAME procid=$SLURM_PROCID nodes=$SLURM_NNODES ntasks=${SLURM_NTASKS-unset}"
exit 3
