import type { ComponentChildren } from 'preact';
import type { NodeFilter } from '../data/node-list.ts';
import { go, nodeQuery, vmQuery } from '../state/route.ts';
import { totals, vmsToLookAt, waiting } from '../state/state.ts';

/** The cluster in five numbers, each with a link to the items that it counts. */
export function Summary() {
  const { nodes, withProblems, cores, freeCores, pods, inFlight, dpus, dpusDead } = totals.value;
  const waits = waiting.value.length;
  const show = (filter: NodeFilter) => () => {
    nodeQuery.value = { ...nodeQuery.value, filter };
    go({ list: 'nodes' });
  };
  const toLookAt = vmsToLookAt.value;
  const showVms = () => {
    vmQuery.value = { ...vmQuery.value, text: '', filter: toLookAt > 0 ? 'attention' : 'all' };
    go({ list: 'vms' });
  };
  return (
    <ul class="summary" aria-label="The cluster in numbers">
      <Tile label="Nodes" value={nodes} onClick={show('all')}>
        {withProblems === 0 ? 'all healthy' : `${(nodes - withProblems).toLocaleString('en')} healthy`}
      </Tile>
      <Tile label="Need attention" value={withProblems} attention={withProblems > 0} onClick={show('problems')}>
        {withProblems === 0 ? 'none' : 'silent, dead DPU, …'}
      </Tile>
      <Tile label="Waiting" value={waits} attention={waits > 0} onClick={() => go({ list: 'waiting' })}>
        {waits === 0 ? 'none' : 'with the reason'}
      </Tile>
      <Tile label="VMs" value={pods} onClick={showVms}>
        {toLookAt > 0
          ? `${toLookAt.toLocaleString('en')} need attention`
          : inFlight === 0
            ? 'no problems'
            : `${inFlight.toLocaleString('en')} in flight`}
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
