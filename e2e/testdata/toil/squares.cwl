cwlVersion: v1.2
class: Workflow
requirements: {ScatterFeatureRequirement: {}}
inputs: {numbers: "int[]"}
outputs:
  sum: {type: File, outputSource: add/sum}
steps:
  square:
    run: square.cwl
    scatter: number
    in: {number: numbers}
    out: [square]
  add:
    run: add.cwl
    in: {squares: square/square}
    out: [sum]
