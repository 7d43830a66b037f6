package Site::Page;
use constant {WIDTH => 80, HEIGHT => 25};
use constant DEPTH => 3;

# Draws a page.
sub draw {
    my ($self) = @_;
}

package Site::Other { sub new { bless {} } }
