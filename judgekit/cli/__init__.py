"""The command line.

Exit codes: 0 all is well; 1 a gate is not met, or something was not scored that should have been; 2 nothing could be run;
130 and 143 interrupted.
"""

from judgekit.cli import audit as audit
from judgekit.cli import cache as cache
from judgekit.cli import compare as compare
from judgekit.cli import compare_judges as compare_judges
from judgekit.cli import convert as convert
from judgekit.cli import doctor as doctor
from judgekit.cli import inspect as inspect
from judgekit.cli import label as label
from judgekit.cli import lists as lists
from judgekit.cli import pair as pair
from judgekit.cli import probe as probe
from judgekit.cli import run as run
from judgekit.cli import runs as runs
from judgekit.cli.app import main as main
