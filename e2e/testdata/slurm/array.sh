#!/bin/bash
#SBATCH --job-name=parts
#SBATCH --array=1-5
#SBATCH --output=part.%a
#SBATCH --error=errors.%a
#SBATCH --time=5 --mem=64M --cpus-per-task=1
echo "part $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT ($SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX), $SLURM_JOB_NAME, $SLURM_CPUS_PER_TASK core, $SLURM_MEM_PER_NODE MiB"
echo "square $((SLURM_ARRAY_TASK_ID * SLURM_ARRAY_TASK_ID))"
echo "warning $SLURM_ARRAY_TASK_ID" >&2
exit 0
