// What the agent answers: the part of internal/view that the page shows. Times are RFC 3339.

export interface Session {
  csrf: string;
  guest: boolean;
  expires?: string;
}

export interface Problem {
  title: string;
  status: number;
  detail?: string;
  field?: string;
  remedy?: string;
}

export interface Resources {
  milli_cpus?: number;
  memory_bytes?: number;
  disk_bytes?: number;
  mflops?: number;
  net_bps?: number;
}

export interface RunningTask {
  task: string;
  token: number;
  submitter: string;
  submitter_name?: string;
  name?: string;
  phase: string;
  need: Resources;
  started?: string;
  leaves?: string;
}

export interface Notice {
  text: string;
  cause?: string;
  action?: string;
}

export interface OwnerView {
  how: string;
  hours?: string;
  share_percent?: number;
  memory_percent?: number;
  in_use?: boolean;
  busy: boolean;
  why?: string;
  hook?: string;
  input?: boolean;
  other_cores?: number;
  job_cores?: number;
}

export interface Machine {
  os?: string;
  arch?: string;
  cpu_model?: string;
  cores?: number;
  memory_bytes?: number;
  disk_bytes?: number;
  free_disk_bytes?: number;
  kept_disk_bytes?: number;
  pending?: string;
}

export interface Standing {
  job: string;
  x?: number;
  y?: number;
  z?: number;
  distance?: number;
  refusal?: string;
  wait_seconds?: number;
  stage_in_seconds?: number;
  run_seconds?: number;
}

export interface Outlook {
  hours: number;
  z: number;
  sure: string;
}

export interface GivenShare {
  site?: string;
  name?: string;
  own?: boolean;
  core_seconds: number;
  tasks: number;
}
export interface GivenDay {
  date: string;
  for: GivenShare[];
}
export interface Given {
  since?: string;
  core_seconds: number;
  tasks: number;
  for: GivenShare[];
}

/** A member as an administrator looks at it. */
export interface FleetRow {
  site: string;
  name?: string;
  self: boolean;
  connected: boolean;
  trouble?: string; // why there is no status
  status?: Status;
  running: number; // jobs that are there
}

export interface Status {
  site: string;
  name?: string;
  domain: string;
  version: string;
  started: string;
  kinds: string[] | null;
  ceilings: Resources;
  in_use: Resources;
  left?: Resources;
  running: RunningTask[] | null;
  paused: boolean;
  paused_until?: string;
  paused_by?: string;
  leaving?: boolean;
  stop_at?: string;
  stopping: boolean;
  peers: number;
  members: number;
  banned: number;
  open_invites: number;
  reach: { reachability: string; serving: boolean; direct: number; relayed: number };
  notices: Notice[] | null;
  owner?: OwnerView;
  machine?: Machine;
  reference?: Standing;
  availability?: { outlook: Outlook[] | null; days: number };
  week?: Given;
}

export type Counts = Record<string, number>;

export interface Job {
  id: string;
  name?: string;
  kind: string;
  phase: string;
  count: number;
  tasks: Counts;
  submitted: string;
  started?: string;
  ended?: string;
  code?: number;
  failed_index?: number;
  moves: number;
  offers: number;
  hint?: string;
  reasons?: string[];
  held?: boolean;
  after?: { id: string; phase?: string }[];
  for_domain?: string;
}

export interface Output {
  path: string;
  to?: string;
  cid: string;
  bytes: number;
  dir: boolean;
  encrypted?: boolean; // the task is named when it is asked for
}

export interface Attempt {
  token: number;
  site: string;
  site_name?: string | undefined;
  domain?: string | undefined;
  cause?: string;
}

export interface Task {
  id: string;
  index: number;
  item?: string;
  phase: string;
  site?: string;
  site_name?: string;
  domain?: string;
  distance?: number;
  started?: string;
  ended?: string;
  planned_start?: string;
  token?: number;
  code?: number;
  cause?: string;
  text?: string;
  outputs?: Output[];
  attempts?: Attempt[];
  saved?: { percent?: number };
}

export interface Offer {
  site: string;
  name?: string;
  rank?: number;
  x?: number;
  y?: number;
  z?: number;
  distance?: number;
  seconds?: number;
  wait_seconds?: number;
  stage_seconds?: number;
  run_seconds?: number;
  behind?: string;
  expected_start?: string;
  tasks_now?: number;
  awarded?: number;
  fault_index?: number;
  never?: boolean;
  refusal?: string;
}

export interface OfferTable {
  job?: string;
  asked?: string;
  round: number;
  members: number;
  answered: number;
  never: boolean;
  map?: string;
  counterfactuals: string[] | null;
  domains?: string[];
  rows: Offer[] | null;
}

export interface Site {
  id: string;
  name?: string;
  domain?: string;
  self: boolean;
  connected: boolean;
  total?: Resources;
  kinds?: string[];
  os?: string;
  arch?: string;
  last_seen?: string;
  round_trip_ms?: number;
  fault_index: number;
  trouble?: string;
  since?: string;
  z_hour?: number;
}

export interface Neighbour {
  name: string;
  domain: string;
  reachable: boolean;
  jobs: number;
  tasks: number;
  done: number;
}

export interface Member {
  site: string;
  name?: string;
  standing: string;
  member: boolean;
  connected: boolean;
  since?: string;
  note?: string;
}
export interface Members {
  domain: string;
  holder: boolean;
  anyone: boolean;
  sites: Member[] | null;
}

export interface Setting {
  name: string;
  value: string;
  from: string;
  place: string;
  live?: boolean;
}
export interface Configuration {
  file: string;
  problem?: string;
  changed?: string[];
  restart?: string[];
  settings?: Setting[];
}

export interface Happening {
  id: number;
  kind: string;
  job?: string;
  task?: string;
  site?: string;
  text?: string;
}
