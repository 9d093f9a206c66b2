import type { ComponentChildren } from 'preact';
import { go } from '../state/route.ts';
import { query, totals, waiting } from '../state/state.ts';

/** The cluster in five numbers, each of which leads to what it counts. */
export function Summary() {
  const { nodes, withProblems, cores, freeCores, pods, inFlight, dpus, dpusDead } = totals.value;
  const waits = waiting.value.length;
  const show = (filter: (typeof query.value)['filter']) => () => {
    query.value = { ...query.value, filter };
    go({ list: 'nodes' });
  };
  return (
    <ul class="summary" aria-label="The cluster in numbers">
      <Tile label="Nodes" value={nodes} onClick={show('all')}>
        {withProblems === 0 ? 'all well' : `${(nodes - withProblems).toLocaleString('en')} well`}
      </Tile>
      <Tile label="Need attention" value={withProblems} attention={withProblems > 0} onClick={show('problems')}>
        {withProblems === 0 ? 'none' : 'silent, dead DPU, …'}
      </Tile>
      <Tile label="Waiting" value={waits} attention={waits > 0} onClick={() => go({ list: 'waiting' })}>
        {waits === 0 ? 'nobody' : 'with the reason'}
      </Tile>
      <Tile label="Placed" value={pods} onClick={show(inFlight > 0 ? 'in-flight' : 'in-use')}>
        {inFlight === 0 ? 'none in flight' : `${inFlight.toLocaleString('en')} in flight`}
      </Tile>
      <Tile label="Whole cores free" value={freeCores}>
        <progress class="share" max={Math.max(1, cores)} value={freeCores} aria-hidden="true" /> of{' '}
        {cores.toLocaleString('en')}
      </Tile>
      {dpus > 0 && (
        <Tile label="DPUs alive" value={dpus - dpusDead} attention={dpusDead > 0} onClick={show('dpu')}>
          of {dpus.toLocaleString('en')}
        </Tile>
      )}
    </ul>
  );
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
      <span class="tile-value">{value.toLocaleString('en')}</span>
      <span class="tile-note">{children}</span>
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
