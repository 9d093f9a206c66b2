import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import { type ConsoleUnderTest, consoleOf } from '../../test/console/fixture.ts';
import { type BenchResult, paced, summary } from '../support/timing.ts';

const NODES = 5000;
const ROUNDS = 5;
/** Updates per second, nodes that change in each, and seconds of updates, followed by pauses of the same length. */
const UPDATES = { perSecond: 10, nodes: 20, seconds: 10 } as const;
const MEGABYTE = 1e6;
const PROGRAM = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path));

/**
 * Cost of the page with 5,000 nodes for the browser: processor time of its main thread and its heap, as Chromium
 * measures them, so that other load has no effect. Frames are compared with those of the same page without updates, in
 * turns.
 */
export async function pageInChromium(): Promise<BenchResult[]> {
  if (PROGRAM === undefined) {
    console.error('console.: skipped, Chromium is missing (npm run test:setup)');
    return [];
  }
  const under = await consoleOf({ invented: NODES });
  const browser = await chromium.launch({
    executablePath: PROGRAM,
    args: ['--no-sandbox', '--enable-precise-memory-info'],
  });
  try {
    // The server's first write of all nodes is not part of the page's cost.
    await (await opened(browser, under)).close();
    const paints: Paint[] = [];
    for (let round = 0; round < paced(ROUNDS, 1); round++) paints.push(await firstPaint(browser, under));
    const rounds: Watched[] = [];
    for (let round = 0; round < paced(ROUNDS, 1); round++) rounds.push(await updates(browser, under));
    return [
      summary(
        'console.first-paint main thread seconds',
        paints.map(({ task }) => task),
        { most: 1.5 },
      ),
      summary(
        'console.heap MB, what is kept',
        paints.map(({ kept }) => kept / MEGABYTE),
        { most: 100 },
      ),
      summary(
        'console.updates frames, of those at rest',
        rounds.map(({ frames }) => frames),
        { least: 0.9 },
      ),
      summary(
        'console.updates longest task, in frames of 1/60 s',
        rounds.map(({ longest }) => longest),
        { most: 1 },
      ),
    ];
  } finally {
    await browser.close();
    await under.stop();
  }
}

interface Paint {
  /** Processor time in seconds of the page's main thread until all nodes are present. */
  readonly task: number;
  /** Bytes of the heap after a collection. */
  readonly kept: number;
}

async function opened(browser: Browser, { url }: ConsoleUnderTest) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(url);
  await page.waitForSelector(`[role=grid][aria-busy=false][aria-rowcount="${NODES + 1}"]`);
  return { page, session, close: () => context.close() };
}

async function firstPaint(browser: Browser, under: ConsoleUnderTest): Promise<Paint> {
  const { session, close } = await opened(browser, under);
  const { TaskDuration: task } = await metricsOf(session);
  await session.send('HeapProfiler.collectGarbage');
  const { JSHeapUsedSize: kept } = await metricsOf(session);
  await close();
  return { task, kept };
}

interface Watched {
  /** Number of frames with updates divided by the number without. */
  readonly frames: number;
  /** Processor time of the main thread's longest task during updates, divided by the time between two frames. */
  readonly longest: number;
}

async function updates(browser: Browser, under: ConsoleUnderTest): Promise<Watched> {
  const { page, close } = await opened(browser, under);
  const { names } = under;
  const seconds = paced(UPDATES.seconds);
  let sent = 0;
  const change = () => {
    // The first rows are visible, the others are not.
    for (let k = 0; k < UPDATES.nodes; k++) {
      const name = names[k < UPDATES.nodes / 2 ? k : (sent * UPDATES.nodes + k) % names.length] ?? '';
      under.node(name, { dpu: sent % 2 === 0 ? 'False' : 'True' });
    }
    sent++;
  };
  await page.evaluate(
    `(() => {
      window.framesDrawn = 0;
      const frame = () => { window.framesDrawn++; requestAnimationFrame(frame); };
      requestAnimationFrame(frame);
    })()`,
  );
  const atRest = { frames: 0 };
  const changing = { frames: 0 };
  await browser.startTracing(page, { categories: ['__metadata', 'toplevel', 'disabled-by-default-devtools.timeline'] });
  for (let second = 0; second < seconds; second++) {
    await watch(page, atRest, undefined);
    await watch(page, changing, change);
  }
  const longest = longestTask(await browser.stopTracing());
  for (const name of names) under.node(name, { dpu: 'True' });
  await close();
  return { frames: changing.frames / atRest.frames, longest: longest * 60 };
}

/** One second with or without updates, added to the sums of its kind. */
async function watch(page: Page, sums: { frames: number }, change: (() => void) | undefined): Promise<void> {
  const framesDrawn = () => page.evaluate<number>('window.framesDrawn');
  const before = await framesDrawn();
  const end = performance.now() + 1000;
  for (let at = 0; at < UPDATES.perSecond; at++) {
    change?.();
    await delay(Math.max(0, end - performance.now()) / (UPDATES.perSecond - at));
  }
  sums.frames += (await framesDrawn()) - before;
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds of processor time. */
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/** Seconds of processor time of the longest task on a renderer's main thread. */
function longestTask(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString()) as { readonly traceEvents: readonly TraceEvent[] };
  const key = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`;
  const isMain = ({ name, args }: TraceEvent) => name === 'thread_name' && args.name === 'CrRendererMain';
  const main = new Set(traceEvents.filter(isMain).map(key));
  const tasks = traceEvents.filter((event) => event.name.endsWith('RunTask') && main.has(key(event)));
  if (tasks.length === 0) throw new Error('the trace shows no task of the page');
  return Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1e6;
}

const METRICS = ['TaskDuration', 'JSHeapUsedSize'] as const;

async function metricsOf(session: CDPSession): Promise<Readonly<Record<(typeof METRICS)[number], number>>> {
  const { metrics } = await session.send('Performance.getMetrics');
  const metric = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN;
  return {
    TaskDuration: metric('TaskDuration'),
    JSHeapUsedSize: metric('JSHeapUsedSize'),
  };
}
