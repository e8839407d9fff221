/** Texts of the page of a job and its steps. */

import { plural } from "./plural";

export const JOB = {
  title: "Job",
  back: "Back to the list",
  stop: "Stop…",
  stopConfirm: ["Stop this job?", "What runs in it is stopped. What has succeeded stays, and the job can be resumed later.", "Stop the job"],
  tabs: { steps: "Steps", chart: "Chart" },
  time: "Time",
  decisions: "Decisions",
  decisionsInOrder: "Decisions, in order",
  flowChart: "Flow chart",
  follow: "Follow the running step",
  chooseStep: "Choose a step to read its conversation.",
  notRun: "This step has not run yet.",
  nothingRun: "Nothing has run yet.",
  entry: "Entry, as stored with this job",
  aStep: "A step",
  missing: "There is no such job",
  allJobs: "All jobs",
  waitsForYou: "Waits for you",
  waitsForWord: "This job waits for your decision.",
  answer: "Show and answer",
  resume: "Resume",
  again: "Run again",
  state: { running: "Working", waiting: "Needs you", succeeded: "Succeeded", failed: "Failed", canceled: "Stopped" },
  step: { todo: "to come", work: "working", need: "needs you", done: "succeeded", failed: "failed", stopped: "stopped" },
  decides: "decides",
  menu: {
    name: "More of this job",
    resume: "Resume, keeping what succeeded",
    again: "Run again from the start",
    entry: "Show the entry",
    edit: "Edit the entry and run it",
    portal: "The portal's page of it",
  },
  size: (steps: number) => `job of ${plural(steps, "step")}`,
  started: (time: string, by: string) => `started ${time} by ${by}`,
  after: (duration: string, won: boolean) => (won ? `in ${duration}` : `${duration.startsWith("under") ? "In" : "After"} ${duration}`),
  took: (duration: string) => `took ${duration}`,
  progress: (word: string, done: number, all: number) => `${word}, ${done} of ${all}`,
  once: "Once",
  /** `step` decides: the last one of the condition. */
  repeat: (until: boolean, step: string, yes: boolean) => `Repeat ${until ? "until" : "while"} “${step}” says ${yes ? "yes" : "no"}`,
  times: (count: number) => `${count} times`,
  round: (count: number) => `round ${count}`,
  ran: (steps: number) => `${plural(steps, "step")} ran`,
  changed: (files: number) => (files ? `${plural(files, "file")} changed` : "no files changed"),
  failed: (reason: string) => (reason ? `Failed: ${reason}` : "Failed."),
  failedAt: (step: string, reason: string) => `Failed at ${step}${reason ? `: ${reason}` : "."}`,
  stopped: "Stopped.",
  bar: (step: string, state: string, took: string, from: string) => `${step}: ${state}, ${took}, from ${from}`,
} as const;

/** Texts of the table of all jobs. */
export const JOBS = {
  title: "Jobs",
  about: "A job runs a saved plan of tasks, with checks.",
  start: "Start a job",
  empty: "No jobs yet. Start one, and watch its steps here.",
  columns: ["Job", "State", "Folder", "Steps run", "Started", "Took"],
} as const;
