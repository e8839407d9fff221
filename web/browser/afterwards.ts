/** Set up for every file of tests. */

import { afterAll } from "vitest";
import { closeContexts } from "./chromium";

afterAll(closeContexts);
