import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { attentionText, countWords } from '../data/shape.ts';
import { line, oldSince, ready, status, totals, waiting } from '../state/state.ts';
import { Ago } from './ago.tsx';

const LINE = { connecting: 'Connecting', live: 'Live', broken: 'Reconnecting', outdated: 'Outdated page' } as const;

export function Header() {
  const about = status.value;
  const isOld = oldSince.value !== undefined;
  return (
    <header class="header">
      <div class="brand">
        <img src="/icon.svg" alt="" width="28" height="28" />
        <span class="brand-name">Plumbline</span>
        {about && <span class="version">{about.version}</span>}
      </div>
      <div class="status">
        <span class={`line is-${isOld ? 'broken' : line.value}`}>
          {isOld ? 'Old data: ' : LINE[line.value]}
          {isOld && <DataAge />}
        </span>
        {about?.leader && <span class="leader">scheduler: {about.leader}</span>}
      </div>
    </header>
  );
}

function DataAge() {
  return <Ago time={new Date(oldSince.value ?? 0).toISOString()} />;
}

const UNKNOWN: Readonly<Record<string, string>> = {
  leases: 'the page cannot show silent agents and a missing scheduler',
  virtualmachineinstancemigrations: 'the page shows a migration only once it has a launcher',
  virtualmachineinstances: 'the page shows paused guests as running, and no VM whose launcher was denied',
  virtualmachines: 'the page cannot show VMs without an instance',
  deployments: 'the page cannot show that the webhook or the scheduler is not ready',
  resourceslices: 'the page cannot show nodes where dra.cpu gives CPUs to claims',
};

/** A part of Plumbline that is down: the area of `plumbline doctor` that shows why, and what it means for users. */
type Fault = readonly [area: string, text: string];

const NO_LEADER: Fault = [
  'extender',
  'Plumbline’s scheduler has no leader: new VMs stay pending, and starting VMs with a CPU mask stay paused',
];
const DOWN = 'is down (no replica is ready)';
/** By the name of the Deployment without its prefix. */
const NOT_READY: Readonly<Record<string, Fault>> = {
  webhook: ['webhook', `The webhook ${DOWN}: new VMs that use Plumbline do not start`],
  scheduler: ['extender', `The scheduler ${DOWN}: new VMs that use Plumbline stay pending, or paused with a CPU mask`],
};

const faultOf = (deployment: string): Fault =>
  NOT_READY[deployment.slice(deployment.indexOf('-') + 1)] ?? ['', `${deployment} ${DOWN}`];

const Warning = ({ alert, children }: Readonly<{ alert: string; children: ComponentChildren }>) => (
  <p class="banner is-warning">
    <span role="alert">{alert}</span>
    {children}
  </p>
);

export function Banner() {
  const about = status.value;
  if (line.value === 'outdated') {
    return (
      <p class="banner is-warning" role="alert">
        The console was updated; this page is from another version.{' '}
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </p>
    );
  }
  if (line.value === 'broken' && oldSince.value !== undefined) {
    return (
      <Warning alert="There is no connection to the console.">
        {' '}
        The data is <DataAge /> old; retrying. Check that <code>plumbline console</code> or{' '}
        <code>kubectl port-forward</code> still runs.
      </Warning>
    );
  }
  if (about === undefined) return null;
  const { missing, problem, leader, notReady, without } = about;
  if (problem !== undefined) {
    return (
      <Warning alert="The API server does not answer.">
        {' '}
        The data is <DataAge /> old; retrying. {problem[1]}
      </Warning>
    );
  }
  if (missing !== undefined) return <p class="banner">Loading the cluster: {missing}.</p>;
  const faults = [...notReady.map(faultOf), ...(leader === null ? [NO_LEADER] : [])];
  if (faults.length > 0) {
    const areas = new Set(faults.map(([area]) => area));
    return (
      <Warning alert={faults.map(([, text]) => `${text}.`).join(' ')}>
        {' '}
        <code>{`plumbline doctor ${[...areas].join(' ')}`.trim()}</code> shows the reason.
      </Warning>
    );
  }
  if (without.length === 0) return null;
  return (
    <p class="banner">
      You may not read {without.join(' and ')}: {without.map((kind) => UNKNOWN[kind] ?? kind).join('; ')}.
    </p>
  );
}

/** Milliseconds without a change before the summary is announced. */
const SETTLED_MILLISECONDS = 2000;

export function Announcer() {
  const [announcement, setAnnouncement] = useState('');
  const { nodes, withProblems } = totals.value;
  const summary = [
    line.value === 'live' ? '' : 'No connection to the console.',
    oldSince.value === undefined ? '' : 'The data is old.',
    `${countWords(nodes, 'node')}, ${attentionText(withProblems)}, ${waiting.value.length} waiting.`,
  ];
  const text = ready.value ? summary.join(' ').trim() : 'Loading the cluster';
  useEffect(() => {
    const timer = setTimeout(() => setAnnouncement(text), SETTLED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p class="unseen" role="status">
      {announcement}
    </p>
  );
}
