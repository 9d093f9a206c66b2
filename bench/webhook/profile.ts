import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandLine, exitOnSignals } from '../../test/support/command-line.ts';
import { until } from '../../test/support/until.ts';
import { type CpuProfile, flameGraph, framesOf } from '../support/flame-graph.ts';
import { root } from '../support/process.ts';
import { startWarmWebhook } from './reviews.ts';

const FILE = 'docs/maintainers/webhook-flame.svg';
const USAGE = `npx tsx bench/webhook/profile.ts

Profiles the bundled webhook (npm run build) under 30,000 reviews of a launcher and writes a flame graph into ${FILE}.`;

const REVIEWS = 30_000;
/** Microseconds between samples. */
const INTERVAL = 200;

commandLine(USAGE, {}, false);
exitOnSignals();
const directory = mkdtempSync(join(tmpdir(), 'plumbline-profile-'));
try {
  const webhook = await startWarmWebhook([
    '--cpu-prof',
    `--cpu-prof-dir=${directory}`,
    `--cpu-prof-interval=${INTERVAL}`,
  ]);
  console.log(`sending ${REVIEWS} reviews`);
  await webhook.load.run(REVIEWS);
  process.kill(webhook.process.pid, 'SIGTERM');
  const profile = await until('the profile', () => readdirSync(directory).find((name) => name.endsWith('.cpuprofile')));
  await webhook.stop();
  const all = framesOf(JSON.parse(readFileSync(join(directory, profile), 'utf8')) as CpuProfile);
  writeFileSync(
    join(root, FILE),
    flameGraph(all, `The webhook under ${REVIEWS} reviews of a launcher, by time of its thread`),
  );
  console.log(`wrote ${FILE}`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
