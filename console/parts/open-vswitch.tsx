import type { SwitchPicture } from '../data/wire.ts';
import type { ServerAnswer } from '../state/ask.ts';
import { CpuList, Paragraphs } from './detail.tsx';

export const SWITCH_REFRESH_MILLISECONDS = 10_000;

export function OpenVswitch({ answer }: { readonly answer: ServerAnswer<SwitchPicture> }) {
  return (
    <section class="switch" aria-labelledby="switch" aria-busy={answer === undefined}>
      <h3 id="switch">Open vSwitch’s threads</h3>
      {answer === undefined && <p class="about">Asking the node’s agent …</p>}
      {answer !== undefined && 'failed' in answer && <p class="about">{answer.failed}</p>}
      {answer !== undefined && 'data' in answer && <Threads picture={answer.data} />}
    </section>
  );
}

function Threads({ picture: { enabled, desired, problems, threads } }: { readonly picture: SwitchPicture }) {
  return (
    <>
      <p class="about">
        {enabled
          ? `The agent restricts ordinary threads to CPUs ${desired ?? 'without an owner'}. The CPUs where they may run now are outlined above.`
          : 'The agent does not move them: its enabler file is missing or empty.'}
      </p>
      <Paragraphs texts={problems} look="problem" />
      {threads.length === 0 ? (
        <p>No Open vSwitch daemon runs on this node.</p>
      ) : (
        <div class="table-frame">
          <table>
            <caption class="unseen">Threads of Open vSwitch</caption>
            <thead>
              <tr>
                <th scope="col">Threads</th>
                <th scope="col">Allowed CPUs</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {threads.map(({ process, pid, kind, threads: count, allowed, desired: desiredCpus, note }) => (
                <tr key={`${pid} ${kind} ${allowed}`}>
                  <th scope="row">
                    {count} × {kind}
                    <span class="about">
                      {process}, pid {pid}
                    </span>
                  </th>
                  <td class="cpus">
                    <CpuList cpus={allowed} />
                  </td>
                  <td>
                    {desiredCpus === null
                      ? note || 'not managed'
                      : desiredCpus === allowed
                        ? 'as configured'
                        : `should be ${desiredCpus}: ${note}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
