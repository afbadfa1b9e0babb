"""The command line.

Exit codes: 0 success; 1 a gate is not met, or something that should have been scored was not; 2 nothing could be run;
130 and 143 interrupted.
"""

from judgekit.cli.app import load_commands as load_commands
from judgekit.cli.app import main as main
