import { Argument } from 'commander';
import { Subcommand } from '../support/command.ts';
import { printLines } from '../support/output.ts';

const EXAMPLES = `
Examples:
  source <(plumbline completion bash)                  # in ~/.bashrc
  source <(plumbline completion zsh)                   # in ~/.zshrc, after compinit
  plumbline completion fish | source                   # in ~/.config/fish/config.fish

As a kubectl plugin, completion works without this where kubectl_complete-plumbline is on the PATH.`;

/** They ask `plumbline __complete` for the candidates: one a line, with the description after a tab. */
const SCRIPTS = {
  bash: `# plumbline completion for bash: source <(plumbline completion bash)
_plumbline() {
  local IFS=$'\\n'
  COMPREPLY=($(plumbline __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _plumbline plumbline
`,
  zsh: `#compdef plumbline
# plumbline completion for zsh: source <(plumbline completion zsh)
_plumbline() {
  local -a found
  local word about
  while IFS=$'\\t' read -r word about; do
    found+=("\${word//:/\\\\:}:\${about}")
  done < <(plumbline __complete "\${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)
  if (( \${#found} )); then _describe plumbline found; else _files; fi
}
compdef _plumbline plumbline
`,
  fish: `# plumbline completion for fish: plumbline completion fish | source
function __plumbline_complete
  set -l words (commandline -opc) (commandline -ct)
  plumbline __complete $words[2..-1] 2>/dev/null
end
complete -c plumbline -f -a '(__plumbline_complete)'
complete -c plumbline -s f -l filename -F
`,
} as const;

export const createCommand = () =>
  new Subcommand(
    'completion',
    'Print a script that completes commands, flags, and the names of VMs, pods, nodes, namespaces and contexts.',
    EXAMPLES,
  )
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .action((shell: Shell) => printLines(SCRIPTS[shell].trimEnd().split('\n')));

type Shell = keyof typeof SCRIPTS;
