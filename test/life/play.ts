import { until } from '../support/until.ts';
import { applyStep, type Step } from './events.ts';
import { CHECK_MILLISECONDS, Invariants, type Violation } from './invariants.ts';
import { LifeNode } from './world/node.ts';

const PROBE_MILLISECONDS = 2000;
/** Seconds in which everything is right again after the last fault: a failed duty counts as failed for 30 s. */
const RECOVERY_SECONDS = 75;

export interface Life {
  readonly violations: readonly Violation[];
  readonly events: number;
  readonly log: string;
}

export interface PlayOptions {
  readonly onEvent?: (text: string) => void;
  readonly endsWith: (invariant: string) => boolean;
  readonly recovers: boolean;
}

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

export async function play(
  steps: readonly Step[],
  { endsWith, recovers, onEvent = () => {} }: PlayOptions,
): Promise<Life> {
  const node = new LifeNode();
  const invariants = new Invariants(node);
  let events = 0;
  const isOver = () => invariants.violations.some(({ invariant }) => endsWith(invariant));
  const timers: NodeJS.Timeout[] = [];
  const wait = async (milliseconds: number) => {
    const end = performance.now() + milliseconds;
    while (performance.now() < end && !isOver()) await pause(Math.min(100, Math.max(1, end - performance.now())));
  };
  try {
    const began = performance.now();
    await node.start();
    await until('the first report', () => isOver() || invariants.status?.cells !== undefined);
    // Nothing has happened before: how long a node takes to start is no promise.
    timers.push(setInterval(() => invariants.check(), CHECK_MILLISECONDS));
    timers.push(setInterval(() => void invariants.probe(), PROBE_MILLISECONDS));
    for (const step of steps) {
      await wait(step.pause);
      if (isOver()) break;
      await applyStep(node, step);
      invariants.sample();
      events++;
      onEvent(`${((performance.now() - began) / 1000).toFixed(1)} s ${step.kind}`);
    }
    if (recovers && !isOver()) await recover(node, invariants, wait, isOver);
    return { violations: invariants.violations, events, log: node.agent?.lastWords() ?? '' };
  } finally {
    for (const timer of timers) clearInterval(timer);
    await node.end();
  }
}

/** Ends every fault, and then turns the affinity off: the masks from before the first agent must return. */
async function recover(
  node: LifeNode,
  invariants: Invariants,
  wait: (milliseconds: number) => Promise<void>,
  isOver: () => boolean,
): Promise<void> {
  const { kubelet, second } = node;
  node.state.repair();
  node.second = undefined;
  await second?.stop();
  await node.setApi('answers');
  kubelet.setAnswers('ready');
  if (kubelet.checkpointFault !== undefined) kubelet.restoreCheckpoint();
  await node.switch.startDatabase();
  if (node.mapFault !== undefined) node.writeMap(node.map);
  const { machine } = kubelet.run;
  const { facts } = node.machine;
  if (!machine.online.equals(facts.online) || machine.pages.join() !== facts.pages.join()) await kubelet.stop();
  await kubelet.start();
  node.startAgent();
  node.moveClock(0);
  const untilRight = async (seconds: number, wrong: () => string[] | Promise<string[]>) => {
    const end = performance.now() + seconds * 1000;
    let last: string[] = ['not looked at yet'];
    while (last.length > 0 && performance.now() < end && !isOver()) {
      await wait(500);
      last = await wrong();
    }
    invariants.failRecovery(isOver() ? [] : last);
  };
  await untilRight(RECOVERY_SECONDS, () => invariants.notRecovered());
  node.switch.setOn(false);
  await untilRight(20, () =>
    node.masksLost === undefined
      ? node.switch.notRestored().map((text) => `d masks not restored at the end: ${text}`)
      : [],
  );
}
