import type { ComponentChildren } from 'preact';
import { PROBLEM_TEXT } from '../data/node.ts';
import type { NodeFilter } from '../data/node-list.ts';
import { attentionText, numberText } from '../data/shape.ts';
import type { NodeProblem } from '../data/wire.ts';
import { go, lists } from '../state/route.ts';
import { oldSince, totals, vms, vmsToLookAt, waiting, waitingBroken } from '../state/state.ts';
import { Ago, OldAge } from './ago.tsx';

export function Summary() {
  const { nodes, withProblems, problemCounts, cores, freeCores, unknownCores, starting, dpus, dpusReady } =
    totals.value;
  const waits = waiting.value;
  const broken = waitingBroken.value;
  const attention = vmsToLookAt.value;
  const show = (filter: NodeFilter) => () => showAll('nodes', filter);
  const showVms = () => showAll('vms', attention > 0 ? 'attention' : 'all');
  const problems = Object.entries(problemCounts) as [NodeProblem, number][];
  const problemText = problems
    .map(([problem, count]) => `${PROBLEM_TEXT[problem].short}: ${numberText(count)}`)
    .join(', ');
  const waitingSince = waits.flatMap(({ since }) => since ?? []).sort()[0];
  const vmText = starting === 0 ? 'none needs attention' : `${numberText(starting)} starting`;
  return (
    <ul class="summary" aria-label="The cluster in numbers">
      <Tile label="Nodes" value={nodes} onClick={show('all')}>
        {withProblems === 0 ? 'all healthy' : `${numberText(nodes - withProblems)} healthy`}
      </Tile>
      <Tile label="Unhealthy nodes" value={withProblems} attention={withProblems > 0} onClick={show('problems')}>
        {problemText || 'none'}
      </Tile>
      <Tile label="Waiting" value={waits.length} attention={waits.length > 0} onClick={() => showAll('waiting', 'all')}>
        {waits.length === 0 && 'none'}
        {broken > 0 && `${numberText(broken)} broken`}
        {broken > 0 && waitingSince !== undefined && ', '}
        {waitingSince !== undefined && (
          <>
            longest <Ago time={waitingSince} />
          </>
        )}
      </Tile>
      <Tile label="Started VMs" value={vms.value.length} onClick={showVms}>
        {attention > 0 ? attentionText(attention) : vmText}
      </Tile>
      <Tile label="Free cores" value={freeCores}>
        <progress class="share" max={Math.max(1, cores)} value={freeCores} aria-hidden="true" /> of {numberText(cores)}
        {unknownCores > 0 && `, ${numberText(unknownCores)} unknown`}
      </Tile>
      {dpus > 0 && (
        <Tile label="DPUs not ready" value={dpus - dpusReady} attention={dpusReady < dpus} onClick={show('dpu')}>
          of {numberText(dpus)}
        </Tile>
      )}
    </ul>
  );
}

/** Goes to a list without a search. */
function showAll<L extends keyof typeof lists>(list: L, filter: keyof (typeof lists)[L]['list']['filters']): void {
  lists[list].select(filter as never);
  go({ list });
}

interface TileProps {
  readonly label: string;
  readonly value: number;
  readonly attention?: boolean;
  readonly onClick?: () => void;
  readonly children: ComponentChildren;
}

function Tile({ label, value, attention = false, onClick, children }: TileProps) {
  const content = (
    <>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{numberText(value)}</span>
      <span class="tile-note">
        {oldSince.value === undefined ? children : 'as of'}
        <OldAge />
      </span>
    </>
  );
  const look = attention ? 'tile is-attention' : 'tile';
  return (
    <li>
      {onClick ? (
        <button type="button" class={look} onClick={onClick}>
          {content}
        </button>
      ) : (
        <div class={look}>{content}</div>
      )}
    </li>
  );
}
