import { cpuSlots, DPU_TEXT, type NodeItem, Paint, PROBLEM_TEXT } from '../data/node.ts';
import { cellsOf, formatCpus, type Shape } from '../data/shape.ts';
import { GONE, type NodeProblem, type SwitchPicture } from '../data/wire.ts';
import { type ServerAnswer, useAnswer } from '../state/ask.ts';
import { hashOf } from '../state/route.ts';
import { changes, ready, store, vms } from '../state/state.ts';
import { Ago, DataAge, timeText } from './ago.tsx';
import { CpuMap, markOf, ownersOf, paintName } from './cpu-map.tsx';
import { CpuList, Detail, Facts } from './detail.tsx';
import { DrainPreview } from './drain.tsx';
import { History } from './history.tsx';
import { OpenVswitch, SWITCH_REFRESH_MILLISECONDS } from './open-vswitch.tsx';
import { Remedies } from './remedies.tsx';

const AGENT_SILENT = { failed: 'Not available: the agent is silent.' } as const;

/** A dead DPU has a separate section with the VMs that depend on it. */
const isSaidHere = (problem: NodeProblem) => problem !== 'dpu-dead';

export function NodeDetail({ name }: { readonly name: string }) {
  changes.value;
  const node = store.nodes.get(name);
  // On the host of a DPU, Open vSwitch runs on the DPU; a node without a report has no agent to ask.
  const hasSwitch = node?.shape !== undefined && node.dpu === '';
  const isSilent = node?.problems.includes('silent') === true;
  const switchUrl = hasSwitch && !isSilent ? `/switch?node=${encodeURIComponent(name)}` : undefined;
  const answer = useAnswer<SwitchPicture>(switchUrl, SWITCH_REFRESH_MILLISECONDS);
  const moved = isSilent ? AGENT_SILENT : answer;
  return (
    <Detail title={name} kind="Node" back={{ list: 'nodes' }}>
      {node === undefined ? (
        <p>{ready.value ? `There is no node ${name}.` : 'Loading …'}</p>
      ) : (
        <>
          {node.problems.filter(isSaidHere).map((problem) => (
            <p key={problem} class="problem">
              <strong>{PROBLEM_TEXT[problem].short}.</strong> {PROBLEM_TEXT[problem].long}
            </p>
          ))}
          <DataAge since={node.silentSince} />
          {node.dpu !== '' && <Dpu node={node} />}
          <Remedies entries={node.remedies} />
          {node.shape && (
            <>
              <CpuMap node={node} shape={node.shape} switched={switchedOf(node.shape, moved)} />
              <Owners node={node} shape={node.shape} />
            </>
          )}
          {node.shape && <DrainPreview node={node} />}
          {hasSwitch && <OpenVswitch answer={moved} />}
          <NodeFacts node={node} />
        </>
      )}
      <History of="node" name={name} />
    </Detail>
  );
}

function switchedOf(shape: Shape, answer: ServerAnswer<SwitchPicture>): ReadonlySet<number> | undefined {
  if (answer === undefined || 'failed' in answer || !answer.data.enabled) return undefined;
  const ordinary = answer.data.threads.filter(({ desired }) => desired !== null);
  return new Set(ordinary.flatMap(({ allowed }) => cpuSlots(shape, allowed)));
}

function Dpu({ node: { name, dpu, dpuSince } }: { readonly node: NodeItem }) {
  const there = vms.value.filter((vm) => vm.node === name);
  const [time, message] = dpuSince ?? [];
  return (
    <section class={dpu === 'dead' ? 'dpu problem' : 'dpu'} aria-label="DPU">
      <p>
        <strong>DPU {DPU_TEXT[dpu]}</strong>
        {time !== undefined && (
          <>
            {' '}
            since {timeText(time)} (<Ago time={time} />)
          </>
        )}
        {message ? `: ${message}` : ''}
        {dpu === 'dead' && '. Pods that need it are placed on other nodes.'}
      </p>
      {there.length > 0 && (
        <p>
          {dpu === 'dead' ? 'Their network does not work' : 'Their network depends on it'}:{' '}
          {there.map((vm, index) => (
            <>
              {index > 0 && ', '}
              <a key={vm.key} href={hashOf({ list: 'vms', chosen: vm.name })}>
                {vm.name}
              </a>
            </>
          ))}
        </p>
      )}
    </section>
  );
}

function Owners({ node, shape }: { readonly node: NodeItem; readonly shape: Shape }) {
  return (
    <div class="table-frame">
      <table class="owners">
        <caption>Owners of CPUs</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Mark</span>
            </th>
            <th scope="col">Who</th>
            <th scope="col">CPUs</th>
            <th scope="col">Cores</th>
            <th scope="col">NUMA</th>
          </tr>
        </thead>
        <tbody>
          {ownersOf(node, shape).map(({ paint, who, about, slots, padded }, index) => (
            <tr key={`${who}-${index}`}>
              <td>
                <span class={`swatch ${paintName(node, paint)}`}>{markOf(node, paint)}</span>
              </td>
              <th scope="row">
                {paint >= Paint.owner && !who.endsWith(GONE) ? (
                  <a href={hashOf({ list: 'vms', chosen: who })}>{who}</a>
                ) : (
                  who
                )}
                {about !== '' && <span class="about">{about}</span>}
                {padded.length > 0 && (
                  <span class="about">
                    <span class={`swatch is-small is-padding ${paintName(node, paint)}`} aria-hidden="true" />{' '}
                    {padded.length} added for whole cores: CPU{' '}
                    {formatCpus(padded.map((slot) => shape.slots[slot]!.cpu))}
                  </span>
                )}
              </th>
              <td class="cpus">
                <CpuList cpus={formatCpus(slots.map((slot) => shape.slots[slot]!.cpu))} />
              </td>
              <td class="number">{new Set(slots.map((slot) => shape.slots[slot]!.core)).size}</td>
              <td class="number">
                {cellsOf(shape, slots)
                  .map(({ id }) => id)
                  .join(', ')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NodeFacts({ node: { shape, dpu, problems, resources } }: { readonly node: NodeItem }) {
  const facts: [string, string][] = [];
  if (shape) {
    const { kubelet, policy, wholeCores, alignment, scope, isolated } = shape.content;
    facts.push(['Kubelet', kubelet ?? 'version unknown']);
    facts.push(['CPU manager', `${policy}${wholeCores ? ', whole cores only (full-pcpus-only)' : ''}`]);
    facts.push(['Topology manager', [alignment ?? 'unknown', scope].filter(Boolean).join(', scope ')]);
    if (isolated) facts.push(['Isolated from the kernel’s scheduler', isolated]);
    if (shape.placeless.length > 0) facts.push(['Networks with an unknown NUMA node', shape.placeless.join(', ')]);
  }
  for (const [resource, text] of resources) facts.push([resource, text]);
  facts.push(['DPU', DPU_TEXT[dpu]]);
  facts.push(['Agent', agentState(problems, shape !== undefined)]);
  return <Facts facts={facts} />;
}

function agentState(problems: readonly NodeProblem[], hasReport: boolean): string {
  if (problems.includes('silent')) return 'silent: its Lease has expired';
  return hasReport ? 'ready' : 'does not report';
}
